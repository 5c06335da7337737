//! Names in lists that programs of Windows wrote, where a backslash separates the parts of a path.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::image::input;
use crate::quote;

/// Returns the name that a file in a list of Windows has on this system, if that is another one. A file whose name has
/// these backslashes comes first, and so does a name of which no file is there either way. A name with a drive or a
/// server is that of another machine.
pub fn translate(name: &[u8]) -> Option<Vec<u8>> {
    let here = with_slashes(name)?;
    (!is_there(name) && is_there(&here)).then_some(here)
}

/// Returns what to do about a name that is not there, if it looks like one of Windows.
pub fn hint(name: &[u8]) -> Option<String> {
    if is_of_machine(name) {
        return Some(
            "it is a name of Windows: blksum --expect VALUE IMAGE compares the image by its name here"
                .to_owned(),
        );
    }
    let here = with_slashes(name).filter(|here| is_there(here))?;
    Some(format!("{} is there: tr '\\\\' / translates the names of a list", quote::name(&here)))
}

fn with_slashes(name: &[u8]) -> Option<Vec<u8>> {
    let is_relative = !name.starts_with(b"\\") && !is_of_machine(name);
    let slashes = || name.iter().map(|byte| if *byte == b'\\' { b'/' } else { *byte });
    let here: Vec<u8> = (is_relative && name.contains(&b'\\')).then(slashes)?.collect();
    (!input::is_uri(OsStr::from_bytes(&here))).then_some(here)
}

/// Whether a path begins with a drive or a server.
fn is_of_machine(name: &[u8]) -> bool {
    let is_drive = matches!(name, [letter, b':', b'\\', ..] if letter.is_ascii_alphabetic());
    is_drive || name.starts_with(b"\\\\")
}

/// Whether there is a file of this name.
fn is_there(name: &[u8]) -> bool {
    Path::new(OsStr::from_bytes(name)).symlink_metadata().is_ok()
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
        assert_eq!(translate(br"no\such\file"), None);
        assert!(hint(br"C:\disk.img").is_some() && hint(br"no\such\file").is_none());
    }
}
