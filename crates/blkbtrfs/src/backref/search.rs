//! A search for owners that counts every step.

use crate::error::{Error, Result};
use crate::filesystem::FileSystem;

/// A search with a limited number of steps.
pub(super) struct Search<'a> {
    pub(super) filesystem: &'a FileSystem,
    /// Number of steps left.
    pub(super) left: u64,
}

impl Search<'_> {
    /// Counts a step.
    ///
    /// # Errors
    ///
    /// Fails if no steps are left.
    pub(super) fn step(&mut self) -> Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            Error::corrupt(
                0,
                "owners were not looked for any further: there are too many references",
            )
        })?;
        Ok(())
    }
}
