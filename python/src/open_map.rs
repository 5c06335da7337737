//! Opens block maps, and creates their files.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use blkcopy::{ExpectedMap, Refused};
use blkindex::Format;
use blkmap::{Error, Map};

use crate::errors::{EISDIR, Failure};
use crate::open::Opened;
use crate::unfinished::Unfinished;

/// An open map with its name.
pub struct OpenMap {
    pub map: Map,
    pub name: OsString,
}

impl OpenMap {
    /// Opens a map, an older state of it, or an index of another program as a map.
    pub fn open(path: &Path, commit: Option<u64>) -> Result<Self, Failure> {
        let name = path.as_os_str().to_owned();
        let map = regular_file(path).and_then(|file| match commit {
            None => Ok(blkindex::open(file, &name)?.map),
            Some(sequence) => match Format::recognise(&file, &name)? {
                Some(format) => Err(Error::Unsupported(format!(
                    "is {} of another program, which has one state",
                    format.noun()
                ))),
                None => Map::open_state(file, sequence),
            },
        });
        match map {
            Ok(map) => Ok(Self { map, name }),
            Err(error) => Err(Failure::Map(error, name)),
        }
    }
}

/// Opens the map, bmap or other index whose content a destination should hold.
pub fn expected(path: &Path) -> Result<ExpectedMap, Failure> {
    let name = path.as_os_str();
    let of_map = |error| Failure::Map(error, name.to_owned());
    let file = regular_file(path).map_err(of_map)?;
    match Format::recognise(&file, name).map_err(of_map)? {
        Some(Format::Bmap) => ExpectedMap::of_bmap(file)
            .map_err(|error| Failure::NotExpected(error, OsString::new(), name.to_owned())),
        _ => OpenMap::open(path, None).map(|opened| ExpectedMap::of_map(opened.map)),
    }
}

/// Creates the file of a map or an index, for users who may read `sources`, the files of an image or maps.
pub fn create<'a>(
    path: &Path,
    sources: impl IntoIterator<Item = &'a OsStr>,
    files: &Unfinished,
) -> Result<File, Failure> {
    let created = files.create(path, sources);
    created.map_err(|error| Failure::Map(error.into(), path.as_os_str().to_owned()))
}

/// Opens or creates the map that a copy of this source writes, and locks it.
pub fn log(path: &Path, source: &Opened, files: &Unfinished) -> Result<File, Failure> {
    let name = path.as_os_str().to_owned();
    let of_source: Vec<_> = source.files().collect();
    match files.open_locked(path, &of_source) {
        Ok((file, _)) => Ok(file),
        Err(Refused::Open(error)) => Err(Failure::Map(error.into(), name)),
        Err(Refused::Kind) => {
            let reason = "is not a regular file".to_owned();
            Err(Failure::Map(Error::Unsupported(reason), name))
        }
        Err(refused) => Err(Failure::Refused(refused, name)),
    }
}

/// Opens a regular file. Others, such as pipes, could block.
pub fn regular_file(path: &Path) -> blkmap::Result<File> {
    let file = File::options().read(true).custom_flags(NONBLOCK).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(std::io::Error::from_raw_os_error(EISDIR).into());
    }
    if kind.is_file() { Ok(file) } else { Err(blkmap::Error::Magic) }
}

const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;
