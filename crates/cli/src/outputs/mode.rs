//! The mode of new files.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;

use blkimage::{Location, container_of};

use crate::stdio;

/// The mode of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMode {
    /// Permissions, less the umask.
    pub bits: u32,
    /// The group that the permissions of the group are for. `None` if there are several.
    group: Option<u32>,
    /// Whether the image may have further files, which are not known yet. The file is private until [`Leftover::share`].
    ///
    /// [`Leftover::share`]: super::Leftover::share
    pub is_open: bool,
}

impl FileMode {
    /// Readable and writable for the owner.
    pub const PRIVATE: Self = Self { bits: PRIVATE, group: None, is_open: false };

    /// Returns the permissions of a file with this group. A folder or a process may give new files another group,
    /// which may not read the image.
    pub fn for_group(self, group: u32) -> u32 {
        if self.group == Some(group) { self.bits } else { self.bits & !0o070 }
    }
}

/// Returns the mode of a new file that is made of images or maps: readable and writable for the users that may read and
/// write all of them, and for the owner. It tells which blocks of an image are equal, and confirms guesses about them.
pub fn mode_of<'a>(names: impl IntoIterator<Item = &'a OsStr>) -> FileMode {
    let modes = names.into_iter().map(mode);
    let all = |one: FileMode, other: FileMode| FileMode {
        bits: one.bits & other.bits,
        group: one.group.filter(|_| one.group == other.group),
        is_open: false,
    };
    let mode = modes.reduce(all).unwrap_or(FileMode::PRIVATE);
    FileMode { bits: mode.bits & 0o666 | PRIVATE, ..mode }
}

/// Returns the mode like [`mode_of`] of images that are opened later. The file is not to be read by users who may not
/// read a backing file.
pub fn mode_of_images<'a>(names: impl IntoIterator<Item = &'a OsStr>) -> FileMode {
    FileMode { is_open: true, ..mode_of(names) }
}

fn mode(name: &OsStr) -> FileMode {
    let metadata = match Location::new(name) {
        _ if name == "-" => stdio::stdin().and_then(|file: File| file.metadata()),
        Location::Path(path) => {
            let path = container_of(path).unwrap_or(path);
            fs::metadata(path)
        }
        _ => return FileMode::PRIVATE,
    };
    // The mode of a device is its node's, and the readers of an export are unknown.
    let file = metadata.ok().filter(Metadata::is_file);
    file.map_or(FileMode::PRIVATE, |it| FileMode {
        bits: it.mode(),
        group: Some(it.gid()),
        is_open: false,
    })
}

/// Readable and writable for the owner.
const PRIVATE: u32 = 0o600;

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn modes() {
        let file = |mode| {
            let file = tempfile::NamedTempFile::new().unwrap();
            file.as_file().set_permissions(Permissions::from_mode(mode)).unwrap();
            file
        };
        let (open, group, private) = (file(0o755), file(0o640), file(0o400));
        let of = |names: &[&OsStr]| mode_of(names.iter().copied()).bits;
        assert_eq!(of(&[open.path().as_os_str()]), 0o644);
        assert_eq!(of(&[open.path().as_os_str(), group.path().as_os_str()]), 0o640);
        assert_eq!(of(&[private.path().as_os_str()]), 0o600);
        let mode = mode_of([group.path().as_os_str()]);
        let other = FileMode { group: mode.group.map(|group| group + 1), ..mode };
        let group = group.as_file().metadata().unwrap().gid();
        assert_eq!((mode.for_group(group), other.for_group(group)), (0o640, 0o600));
        for name in ["/dev/null", "nbd://localhost/x", "/nonexistent"] {
            assert_eq!(of(&[OsStr::new(name)]), 0o600);
        }
    }
}
