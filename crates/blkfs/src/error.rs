//! Reasons why a file system cannot be read.

use std::fmt;

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Reason why a file system cannot be read at all. What cannot be read within one is a [`Problem`](crate::Problem).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The image cannot be read.
    #[error(transparent)]
    Image(#[from] blkimage::Error),
    /// A structure that all others depend on is invalid.
    #[error("{reason} (offset {offset} of the file system)")]
    Damaged {
        /// Description of the structure and its defect.
        reason: String,
        /// Its offset in the file system in bytes.
        offset: u64,
    },
    /// The file system uses a feature that is not read.
    #[error("{0} is not supported")]
    Unsupported(String),
    /// The visitor stopped the walk.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    pub(crate) fn damaged(offset: u64, reason: impl fmt::Display) -> Self {
        Self::Damaged { reason: reason.to_string(), offset }
    }
}
