//! The mode of new files.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;

use blkimage::{Location, split_member};

use crate::stdio;

/// Returns the mode of a new file that is made of images or maps: readable and writable for the users that may read and
/// write all of them, and for the owner. It tells which blocks of an image are equal, and confirms guesses about them.
pub fn mode_of<'a>(names: impl IntoIterator<Item = &'a OsStr>) -> u32 {
    let modes = names.into_iter().map(mode);
    modes.fold(0o666, |all, mode| all & mode) | PRIVATE
}

fn mode(name: &OsStr) -> u32 {
    let metadata = match Location::new(name) {
        _ if name == "-" => stdio::stdin().and_then(|file: File| file.metadata()),
        Location::Path(path) => {
            let path = split_member(path).map_or(path, |(appliance, _)| appliance);
            fs::metadata(path)
        }
        _ => return PRIVATE,
    };
    // The mode of a device is that of its node, and who may read an export is not known.
    metadata.ok().filter(Metadata::is_file).map_or(PRIVATE, |it| it.mode())
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
        let of = |names: &[&OsStr]| mode_of(names.iter().copied());
        assert_eq!(of(&[open.path().as_os_str()]), 0o644);
        assert_eq!(of(&[open.path().as_os_str(), group.path().as_os_str()]), 0o640);
        assert_eq!(of(&[private.path().as_os_str()]), 0o600);
        for name in ["/dev/null", "nbd://localhost/x", "/nonexistent"] {
            assert_eq!(of(&[OsStr::new(name)]), 0o600);
        }
    }
}
