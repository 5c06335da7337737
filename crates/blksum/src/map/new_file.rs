//! Creates the file of a new map.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use blkimage::{Location, split_member};

/// Creates a file with the permissions of the file of `image`. A map says much about the content of a private image.
///
/// # Errors
///
/// Fails if the file exists or cannot be created.
pub fn new_file(path: &Path, image: &OsStr) -> io::Result<File> {
    let source = metadata_of(image);
    // Devices and exports do not say who may read them.
    let mode = source.as_ref().map_or(PRIVATE, |it| it.mode() & 0o666 | PRIVATE);
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).mode(mode).open(path)?;
    let metadata = file.metadata()?;
    // Another group may not read the image.
    if metadata.mode() & GROUP != 0 && source.is_some_and(|it| it.gid() != metadata.gid()) {
        file.set_permissions(Permissions::from_mode(metadata.mode() & 0o7777 & !GROUP))?;
    }
    Ok(file)
}

/// Returns the metadata of an image that is a file.
fn metadata_of(image: &OsStr) -> Option<Metadata> {
    let file = match Location::new(image) {
        Location::Path(path) => split_member(path).map_or(path, |(appliance, _)| appliance),
        _ => return None,
    };
    fs::metadata(file).ok().filter(Metadata::is_file)
}

/// Readable and writable for the owner.
const PRIVATE: u32 = 0o600;

/// The permissions of the group.
const GROUP: u32 = 0o070;
