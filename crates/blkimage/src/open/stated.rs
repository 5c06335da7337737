//! Opens images for the checksums that they state.

use std::path::Path;

use super::detect;
use crate::error::Result;
use crate::options::OpenOptions;
use crate::probe::Format;
use crate::stated::Stated;

impl OpenOptions {
    /// Opens the image at `path` and returns the checksums that it states of its content. Returns `None` if it states none.
    ///
    /// # Errors
    ///
    /// Fails as [`open`](Self::open) does.
    pub fn stated_checksums(&self, path: &Path) -> Result<Option<Stated>> {
        Ok(self.open(path)?.stated_checksums())
    }
}

/// Returns whether the file at `path` is an image of a format that [states checksums](Format::states_checksums) of its content.
/// Its first bytes decide, with which no check file begins.
pub fn states_checksums(path: &Path) -> bool {
    detect(path).is_ok_and(Format::states_checksums)
}
