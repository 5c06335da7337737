//! Which members of an archive are its disks.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::name::has_extension;
use crate::error::excerpt;
use crate::probe::probe;
use crate::recognise::FileKind;

/// Returns whether a member is a disk: by its first bytes, or by its name. `head` is its first
/// [`PROBE_SIZE`](crate::probe::PROBE_SIZE) bytes, or all of a shorter member.
pub(super) fn is_disk(name: &[u8], head: &[u8]) -> bool {
    let kind = FileKind::of_name(Path::new(OsStr::from_bytes(name)));
    probe(head).is_some()
        || kind.is_some_and(|kind| kind.format().is_some())
        || RAW.iter().any(|end| has_extension(name, end))
}

/// Returns the disks of an archive: the members that are some by their names and first bytes, and otherwise the only file.
/// `files` are the names of all files. Fails with the reason if there is neither.
pub(super) fn disks<'a>(
    found: Vec<Vec<u8>>,
    mut files: impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<Vec<u8>>, String> {
    if !found.is_empty() {
        return Ok(found);
    }
    let first: Vec<_> = files.by_ref().take(MAX_NAMES).collect();
    match &*first {
        [] => Err("has no file".into()),
        [only] => Ok(vec![only.to_vec()]),
        _ => {
            let names: Vec<_> = first.iter().map(|name| excerpt(name)).collect();
            let more = if files.next().is_some() { ", ..." } else { "" };
            let names = names.join(", ");
            Err(format!(
                "has no file with the content or the name of an image: name one, as {names}{more} behind a colon"
            ))
        }
    }
}

/// Returns the reason why there is no member of this name, with the names of some.
pub(super) fn unknown<'a>(name: &[u8], mut files: impl Iterator<Item = &'a [u8]>) -> String {
    let known: Vec<_> = files.by_ref().take(MAX_NAMES).map(excerpt).collect();
    let more = if files.next().is_some() { ", ..." } else { "" };
    let known = known.join(", ");
    format!("has no file with the name \"{}\": it has {known}{more}", excerpt(name))
}

/// Ends of the names of raw disks.
const RAW: [&[u8]; 8] =
    [b".img", b".raw", b".iso", b".wic", b".sdcard", b".dd", b".sdimg", b".hddimg"];

/// Maximum number of members of an archive that an error names.
/// Limit in members.
const MAX_NAMES: usize = 5;
