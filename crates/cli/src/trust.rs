//! Whether a file next to an image is as trustworthy as the image.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Returns whether a file is written only by users who may write the image, by root and by the caller.
pub fn only_writers_of(image: &Metadata, file: &Metadata) -> bool {
    let caller = rustix::process::geteuid().as_raw();
    let is_owner = [image.uid(), 0, caller].contains(&file.uid());
    let is_group = image.gid() == file.gid() && image.mode() & GROUP != 0;
    is_owner && (is_group || file.mode() & GROUP == 0) && file.mode() & OTHERS == 0
}

/// The group may write.
const GROUP: u32 = 0o020;

/// Everyone may write.
const OTHERS: u32 = 0o002;

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn writers() {
        let file = |mode| {
            let file = tempfile::tempfile().unwrap();
            file.set_permissions(Permissions::from_mode(mode)).unwrap();
            file.metadata().unwrap()
        };
        for (image, other, is_safe) in [
            (0o600, 0o600, true),
            (0o644, 0o644, true),
            (0o400, 0o644, true),
            (0o664, 0o664, true),
            (0o644, 0o664, false),
            (0o666, 0o646, false),
        ] {
            assert_eq!(only_writers_of(&file(image), &file(other)), is_safe, "{image:o} {other:o}");
        }

        let root = fs::metadata("/").unwrap();
        assert_eq!(root.uid(), 0);
        assert!(only_writers_of(&File::open("/dev/null").unwrap().metadata().unwrap(), &root));
    }
}
