//! The maps that `--map` writes in the pass of the checksums.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use blkhash::{Construction, Digest, Parameters, Salt};
use blkimage::container_of;
use blkmap::{Commit, Header};
use blksum::map::{Info, Made, Subject};
use blksum::{Error, Progress, Tuning};

use super::report;
use super::settings::{Hash, Settings};
use crate::image::input;
use crate::image::notes::Notes;
use crate::map;
use crate::map::output::{Content, Output};
use crate::outputs::{Named, mode_of_images};
use crate::problem::Problem;
use crate::{messages, quote};

/// The maps of a run. They are opened before the process is restricted.
pub struct Maps {
    of_images: HashMap<OsString, MapFile>,
}

/// The map of an image.
struct MapFile {
    path: PathBuf,
    output: Result<Output, Problem>,
}

impl Maps {
    /// Opens the maps of the images on the command line, or none without `--map`. Fails before it creates a file if
    /// they are too many to be open at once.
    pub fn open(settings: &Settings, hash: &Hash) -> Result<Self, String> {
        let mut of_images = HashMap::new();
        let Some(target) = &hash.map else { return Ok(Self { of_images }) };
        let is_folder = target.is_dir();
        let mut paths = HashSet::new();
        let expand =
            |name| input::expand(name, settings.origin, hash.recursive.as_ref(), Notes::Silent);
        // The maps may be in a folder of images.
        let images = settings.names.iter().flat_map(|name| expand(name)).map(|(name, _)| name);
        let is_folder_of_images = hash.recursive.is_some();
        // No empty map remains for an image that does not exist.
        let is_map = |name: &OsStr| is_folder_of_images && name.as_bytes().ends_with(b".blkmap");
        let mut names: Vec<_> = images.filter(|name| !is_missing(name) && !is_map(name)).collect();
        let mut known = HashSet::new();
        names.retain(|name| known.insert(name.clone()));
        if !is_folder_of_images && names.iter().any(|name| name.as_bytes().ends_with(b".blkmap")) {
            messages::message(MAPS_AMONG_IMAGES);
        }
        let (count, limit) = (names.len() as u64, map::raise_limit_on_files());
        if let Some(limit) = limit.filter(|limit| count.saturating_add(SPARE_FILES) > *limit) {
            return Err(format!(
                "--map: {count} maps are too many to be open at once, as this process may have {limit} open files \
                 (ulimit -n): hash fewer images in one run"
            ));
        }
        for name in names {
            let path = match is_folder {
                true => path_in(target, &name),
                false => Ok(target.clone()),
            };
            let map = match path {
                Err(reason) => MapFile { path: target.clone(), output: Err(reason.into()) },
                Ok(path) if !paths.insert(path.clone()) => {
                    MapFile { path, output: Err("is the map of another image".into()) }
                }
                Ok(path) => {
                    let named =
                        if is_folder { Named::AfterImage(Path::new(&name)) } else { Named::ByUser };
                    let output = Output::open(path.as_os_str(), named, mode_of_images([&*name]));
                    MapFile { output, path }
                }
            };
            of_images.insert(name, map);
        }
        Ok(Self { of_images })
    }

    /// Returns whether an image was there when the maps were opened.
    pub fn has(&self, name: &OsStr) -> bool {
        self.of_images.contains_key(name)
    }

    /// Computes the checksums of an image, and writes its map in the same pass. A finished map stays as it is: then the problem
    /// comes with the checksums.
    pub fn checksums(
        &self,
        subject: &Subject<'_>,
        parameters: &[Parameters],
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<(Vec<Digest>, Option<Problem>), Problem> {
        let Some(MapFile { path, output }) = self.of_images.get(subject.name) else {
            return Err(Problem::new("was not there when its map was opened"));
        };
        let of_map = |problem: Problem| {
            let name = quote::name(path.as_os_str().as_bytes());
            Problem::new(format!("{name}: {}", problem.text()))
        };
        let output = output.as_ref().map_err(|problem| of_map(problem.clone()))?;
        output.check_apart(subject.image).map_err(of_map)?;
        if let Content::Map(old) = output.content().map_err(of_map)?
            && old.commit().is_some_and(Commit::is_final)
        {
            let digests = blksum::checksums(subject.source, parameters, tuning, progress);
            let digests = digests.map_err(|error| report::problem(&error, subject.name))?;
            return Ok((digests, Some(of_map(EXISTS.into()))));
        }
        let header = header(&parameters[0]).map_err(|reason| of_map(reason.into()))?;
        let info = Info::new(Made::Read).describe(subject);
        let writer = output.begin(header, subject.source.size());
        let writer = writer
            .map_err(|error| of_map(error.into()))?
            .checkpoint_every(blkmap::CHECKPOINT, info.to_string());
        let written = blksum::map::write_with_checksums(
            writer,
            subject.source,
            parameters,
            &info,
            tuning,
            progress,
        );
        written.map(|digests| (digests, None)).map_err(|error| match error {
            Error::Map(error) => of_map(error.into()),
            error => report::problem(&error, subject.name),
        })
    }
}

/// Returns the parameters of the map that is made with a checksum. Its blocks are the checksum's where it
/// has some.
fn header(parameters: &Parameters) -> Result<Header, String> {
    let construction = parameters.construction();
    let size = construction.has_blocks().then(|| parameters.block_size());
    let block_size = size.unwrap_or_default();
    let has_plain_salt = construction == Construction::DmVerity;
    let salt = if has_plain_salt { *parameters.salt() } else { Salt::EMPTY };
    let header = Header::new(parameters.algorithm(), block_size, salt);
    header.map_err(|error| messages::reason(&error))
}

fn is_missing(name: &OsStr) -> bool {
    name != "-"
        && !input::is_uri(name)
        && container_of(Path::new(name)).is_none()
        && std::fs::metadata(name).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// Returns the path of the map of an image in a folder.
fn path_in(folder: &Path, name: &OsStr) -> Result<PathBuf, String> {
    let base = match input::is_uri(name) {
        true => map::name_of_url(name),
        false => map::path_of(name).file_name().filter(|_| name != "-").map(OsStr::to_owned),
    };
    let mut file = base.ok_or("give the name of the map: the image has no file name")?;
    file.push(".blkmap");
    Ok(folder.join(file))
}

const MAPS_AMONG_IMAGES: &str = "note: maps (*.blkmap) are among the images, and are hashed like them: a pattern such as \
                                 *.qcow2 or --recursive leaves them out";

const EXISTS: &str = "exists: remove it, or write the map elsewhere";

/// Open files that are left for images and libraries.
const SPARE_FILES: u64 = 32;
