//! Recognises images that may state checksums of their content.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::detect_file;
use crate::compression::Compression;
use crate::error::{Error, ErrorKind};
use crate::implanted::Descriptor;
use crate::probe::{Format, PROBE_SIZE};
use crate::storage::local::file::find;

/// Returns whether the file at `path` is an image that may state checksums of its content: one of
/// [such a format](Format::states_checksums), a raw one of ISO 9660, or compressed. Its first bytes or its last sector decide,
/// like which no check file begins or ends.
pub fn states_checksums(path: &Path) -> bool {
    let error = |error| Error::new(ErrorKind::Open, path, "cannot open").because(error);
    let file = find(path).and_then(|found| found.open().map_err(error));
    file.is_ok_and(|file| match detect_file(&file, path) {
        Ok(Format::Raw) => is_iso(&file) || is_compressed(path, &file),
        Ok(format) => format.states_checksums(),
        Err(_) => false,
    })
}

/// Returns whether a file has the name and the beginning of a compressed one.
fn is_compressed(path: &Path, file: &File) -> bool {
    let Some(compression) = Compression::of_name(path) else { return false };
    let mut head = Vec::new();
    let read = file.take(PROBE_SIZE as u64).read_to_end(&mut head);
    read.is_ok() && compression.begins(&head)
}

/// Returns whether a file that is no text has the primary volume descriptor of ISO 9660.
fn is_iso(file: &File) -> bool {
    let mut head = [0; PROBE_SIZE];
    let mut descriptor = Descriptor([0; _]);
    file.read_exact_at(&mut head, 0).is_ok()
        && head.contains(&0)
        && file.read_exact_at(&mut descriptor.0, Descriptor::OFFSET).is_ok()
        && descriptor.is_primary()
}
