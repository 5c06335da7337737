//! Writes new files, which are removed if the work fails.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use blkimage::{Location, split_member};

use crate::errors::Failure;

/// Writes a new file with the mode of the file of `image`, or removes the file.
pub fn to_new_file(
    output: &Path,
    image: &OsStr,
    write: impl FnOnce(File) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(mode_of(image));
    let file = options
        .open(output)
        .map_err(|error| Failure::Map(error.into(), output.as_os_str().to_owned()))?;
    // An unfinished map is taken for one by no command, but half an export may be taken for a whole one.
    write(file).inspect_err(|_| drop(fs::remove_file(output)))
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
