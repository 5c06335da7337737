//! Makes a map for `blkhash.create_map()`.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use blkimage::{Location, split_member};
use blkmap::{Header, Key, Writer};
use blksum::map::{ALL, Info, Made};
use blksum::{Progress, Tuning};
use pyo3::prelude::*;

use crate::arguments::{self, value_error};
use crate::errors::Failure;
use crate::input::Input;
use crate::job::Watch;
use crate::map;
use crate::open::Opened;

/// Writes the map of an image to a new file.
#[pyfunction(name = "_create_map")]
#[expect(clippy::too_many_arguments, reason = "are those of Python")]
pub fn create_map(
    py: Python<'_>,
    image: &Bound<'_, PyAny>,
    output: PathBuf,
    digest: &str,
    block_size: u64,
    salt: &Bound<'_, PyAny>,
    key: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
    cancel: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let algorithm = arguments::algorithm(digest)?;
    if !Header::accepts(algorithm) {
        return Err(value_error(format!("there are no maps with digest '{digest}'")));
    }
    let block_size = arguments::block_size(block_size)?;
    let salt = arguments::salt(Some(salt))?;
    let key = key.map(map::key).transpose()?;
    let input = Input::new(image)?;
    let tuning = arguments::tuning(threads, None)?;
    let watch = Watch { progress, cancel };
    watch.run(py, move |progress| {
        let header = Header::new(algorithm, block_size, salt)
            .map_err(|error| Failure::Other(error.to_string()))?;
        input.with(|image| write(image, &output, header, key, &tuning, progress))
    })
}

/// Writes the file, or removes it.
fn write(
    image: &Opened,
    output: &Path,
    header: Header,
    key: Option<Key>,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<(), Failure> {
    let info = Info::new(Made::Read).describe(&image.subject());
    let content = image.content();
    to_new_file(output, image, |file| {
        let writer = Writer::new(file, header, content.size())?.sealed_with(key);
        blksum::map::write(writer, content, ALL, &info, tuning, progress).map(drop)
    })
}

/// Writes the map of an image to a new file, or removes the file.
pub fn to_new_file(
    output: &Path,
    image: &Opened,
    write: impl FnOnce(File) -> Result<(), blksum::Error>,
) -> Result<(), Failure> {
    let name = || output.as_os_str().to_owned();
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(mode_of(&image.name));
    let file = options.open(output).map_err(|error| Failure::Map(error.into(), name()))?;
    write(file).map_err(|error| {
        // It is not finished, and no command takes it for a map.
        let _ = fs::remove_file(output);
        Failure::Pass(error, name())
    })
}

/// Returns the mode of the map: readable for the users that may read the file of the image. Devices and exports do not say
/// who that is.
fn mode_of(image: &OsStr) -> u32 {
    let file = match Location::new(image) {
        Location::Path(path) => split_member(path).map_or(path, |(appliance, _)| appliance),
        _ => return PRIVATE,
    };
    let metadata = fs::metadata(file).ok().filter(Metadata::is_file);
    metadata.map_or(PRIVATE, |it| it.mode() & 0o666 | PRIVATE)
}

/// Readable and writable for the owner.
const PRIVATE: u32 = 0o600;
