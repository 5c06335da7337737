//! The names of members.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::excerpt;
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

/// Returns the first of some names of disks or members, for an error.
pub(super) fn first<T: AsRef<[u8]>>(mut names: impl Iterator<Item = T>) -> String {
    let first: Vec<_> = names.by_ref().take(MAX_NAMES).map(|name| excerpt(name.as_ref())).collect();
    let more = if names.next().is_some() { ", ..." } else { "" };
    first.join(", ") + more
}

/// Maximum number of disks or members of a container that an error names.
/// Limit in names.
const MAX_NAMES: usize = 5;
