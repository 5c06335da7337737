//! Opens images for the checksums that they state.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::detect_file;
use crate::error::{Error, ErrorKind, Result};
use crate::implanted::Descriptor;
use crate::options::OpenOptions;
use crate::probe::{Format, PROBE_SIZE};
use crate::stated::Stated;
use crate::storage::local::file::find;

impl OpenOptions {
    /// Opens the image at `path` and returns the checksums that it states of its content. Returns `None` if it states none.
    ///
    /// # Errors
    ///
    /// Fails as [`open`](Self::open) does.
    pub fn stated_checksums(&self, path: &Path) -> Result<Option<Stated>> {
        self.open(path)?.stated_checksums()
    }
}

/// Returns whether the file at `path` is an image that may state checksums of its content: one of
/// [such a format](Format::states_checksums), or a raw one of ISO 9660. Its first bytes or its last sector decide, like which
/// no check file begins or ends.
pub fn states_checksums(path: &Path) -> bool {
    let error = |error| Error::new(ErrorKind::Open, path, "cannot open").because(error);
    let file = find(path).and_then(|found| found.open().map_err(error));
    file.is_ok_and(|file| match detect_file(&file, path) {
        Ok(Format::Raw) => is_iso(&file),
        Ok(format) => format.states_checksums(),
        Err(_) => false,
    })
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
