//! Which members of an archive are its disks.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::name::{first, has_extension};
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
    match (files.next(), files.next()) {
        (None, _) => Err("has no file".into()),
        (Some(only), None) => Ok(vec![only.to_vec()]),
        (Some(one), Some(other)) => {
            let names = first([one, other].into_iter().chain(files));
            Err(format!(
                "has no file with the content or the name of an image: name one after a colon, as {names}"
            ))
        }
    }
}

/// Returns the reason why there is no member of this name, with the names of some.
pub(super) fn unknown<'a>(name: &[u8], files: impl Iterator<Item = &'a [u8]>) -> String {
    format!("has no file with the name \"{}\": it has {}", excerpt(name), first(files))
}

/// Ends of the names of raw disks.
const RAW: [&[u8]; 8] =
    [b".img", b".raw", b".iso", b".wic", b".sdcard", b".dd", b".sdimg", b".hddimg"];
