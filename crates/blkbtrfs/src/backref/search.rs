//! A search for owners, every step of which is counted.

use crate::error::{Error, Result};
use crate::filesystem::FileSystem;

/// A search that may take only so many steps.
pub(super) struct Search<'a> {
    pub(super) filesystem: &'a FileSystem,
    /// Steps that it may still take.
    pub(super) left: u64,
}

impl Search<'_> {
    /// Counts a step.
    ///
    /// # Errors
    ///
    /// There were as many as there may be.
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
