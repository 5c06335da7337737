//! Names in lists that programs of Windows wrote, where a backslash separates the parts of a path.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blkimage::Location;

/// Returns the name that a file in a list of Windows has on this system, if that is another one. A file whose name has
/// these backslashes comes first, and so does a name of which no file is there either way. A name with a drive or a
/// server belongs to another machine. Relative names are in `folder`.
pub fn translate(folder: &Path, name: &[u8]) -> Option<Vec<u8>> {
    let here = with_slashes(name)?;
    (!is_there(folder, name) && is_there(folder, &here)).then_some(here)
}

fn with_slashes(name: &[u8]) -> Option<Vec<u8>> {
    let is_relative = !name.starts_with(b"\\") && !is_of_machine(name);
    let slashes = || name.iter().map(|byte| if *byte == b'\\' { b'/' } else { *byte });
    let here: Vec<u8> = (is_relative && name.contains(&b'\\')).then(slashes)?.collect();
    (!Location::new(OsStr::from_bytes(&here)).is_uri()).then_some(here)
}

/// Returns whether a path begins with a drive or a server.
pub fn is_of_machine(name: &[u8]) -> bool {
    let is_drive = matches!(name, [letter, b':', b'\\', ..] if letter.is_ascii_alphabetic());
    is_drive || name.starts_with(b"\\\\")
}

/// Whether there is a file of this name.
fn is_there(folder: &Path, name: &[u8]) -> bool {
    folder.join(OsStr::from_bytes(name)).symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_windows() {
        let slashes =
            |name: &str| with_slashes(name.as_bytes()).map(|it| String::from_utf8(it).unwrap());
        assert_eq!(slashes(r".\a\b c").as_deref(), Some("./a/b c"));
        assert_eq!(slashes(r"a\..\b/c").as_deref(), Some("a/../b/c"));
        for name in ["a", "a/b", "", r"C:\a", r"\\server\a", r"\a", r"z:\\", r"nbd:\\host\a"] {
            assert_eq!(slashes(name), None, "{name}");
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/b"), "").unwrap();
        assert_eq!(translate(folder.path(), br"a\b").as_deref(), Some(&b"a/b"[..]));
        std::fs::write(folder.path().join(r"a\b"), "").unwrap();
        assert_eq!(translate(folder.path(), br"a\b"), None);
        assert_eq!(translate(folder.path(), br"no\such\file"), None);
        assert!(is_of_machine(br"C:\disk.img") && !is_of_machine(br"no\such\file"));
    }
}
