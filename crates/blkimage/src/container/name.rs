//! The names of members.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns the name of a member of the appliance at `path`.
pub fn member_name(path: &Path, member: &[u8]) -> PathBuf {
    let name = [path.as_os_str().as_bytes(), b":", member].concat();
    PathBuf::from(OsStr::from_bytes(&name))
}

/// Returns whether a name ends in `extension`, in any case, and has something before it.
pub(crate) fn has_extension(name: &[u8], extension: &[u8]) -> bool {
    name.len().checked_sub(extension.len()).is_some_and(|at| {
        at > 0 && name[at - 1] != b'/' && name[at..].eq_ignore_ascii_case(extension)
    })
}
