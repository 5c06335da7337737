//! Creates the file of a new map.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf, absolute};

use blkimage::{Identity, Location, container_of};

/// Creates a file that the users may read who may read all of `files`, at most: the files of an image and of images
/// below it, or maps. A map says much about the content of a private image.
///
/// # Errors
///
/// Fails if the file exists, would be in the folder of devices, or cannot be created.
pub fn new_file<'a>(
    path: &Path,
    files: impl IntoIterator<Item = &'a OsStr>,
) -> io::Result<(File, NewName)> {
    // The current folder may change.
    let whole = absolute(path)?;
    if fs::symlink_metadata(path).is_err() && blksys::is_among_devices(path) {
        return Err(io::Error::other(blksys::AMONG_DEVICES));
    }
    let sources: Vec<_> = files.into_iter().map(metadata_of).collect();
    // Devices and exports do not say which users may read them.
    let modes = sources.iter().map(|it| it.as_ref().map_or(PRIVATE, Metadata::mode));
    let mode = modes.reduce(|one, other| one & other).unwrap_or(PRIVATE);
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(mode & 0o666 | PRIVATE);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    // Another group may not read the image.
    let is_other = |it: &Metadata| it.gid() != metadata.gid();
    if metadata.mode() & GROUP != 0 && sources.iter().flatten().any(is_other) {
        file.set_permissions(Permissions::from_mode(metadata.mode() & 0o7777 & !GROUP))?;
    }
    Ok((file, NewName { path: whole, identity: Identity::new(&metadata) }))
}

/// The name of a file that was created.
#[derive(Debug)]
pub struct NewName {
    path: PathBuf,
    identity: Identity,
}

impl NewName {
    /// Removes the file, if it still has this name.
    pub fn remove(self) {
        if Identity::of(&self.path) == Some(self.identity) {
            let _ = fs::remove_file(self.path);
        }
    }
}

/// Returns the metadata of an image that is a file.
fn metadata_of(image: &OsStr) -> Option<Metadata> {
    let file = match Location::new(image) {
        Location::Path(path) => container_of(path).unwrap_or(path),
        _ => return None,
    };
    fs::metadata(file).ok().filter(Metadata::is_file)
}

/// Readable and writable for the owner.
const PRIVATE: u32 = 0o600;

/// The permissions of the group.
const GROUP: u32 = 0o070;
