//! The names of members.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(crate) use crate::location::has_extension;
use crate::location::url_of_member;

/// Returns the name of a member of the container at `path`, which may be a URL.
pub fn member_name(path: &Path, member: &[u8]) -> PathBuf {
    if let Some(url) = path.to_str().and_then(|text| url_of_member(text, member)) {
        return url.into();
    }
    let name = [path.as_os_str().as_bytes(), b":", member].concat();
    PathBuf::from(OsStr::from_bytes(&name))
}
