//! Opens block maps.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use blkindex::Format;
use blkmap::{Error, Map};

use crate::errors::{EISDIR, Failure};

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
