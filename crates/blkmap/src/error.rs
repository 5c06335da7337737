use std::io;

/// The result of reading or writing a map.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a file is no map, or cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file does not begin like a map.
    #[error("is not a block map")]
    Magic,
    /// The map has another version.
    #[error("has version {0} of the format: only version 1 is known")]
    Version(u32),
    /// The file does not end with a final commit: it was cut off, or its writing was interrupted.
    #[error("is not finished: it does not end with a final commit")]
    Unfinished,
    /// Bytes of the map contradict each other.
    #[error("is damaged at {offset}: {reason}")]
    Damaged {
        /// Offset in the file.
        offset: u64,
        /// The problem.
        reason: String,
    },
    /// The map has a value that this version does not support.
    #[error("{0}")]
    Unsupported(String),
    /// The digests that were written do not belong to the image that was announced.
    #[error("{0}")]
    Content(String),
    /// Maps do not belong together: their parameters, sizes or blocks contradict each other.
    #[error("{0}")]
    Mismatch(String),
    /// The map does not know every block.
    #[error("knows only {known} of {blocks} blocks")]
    Incomplete {
        /// Number of blocks that it knows.
        known: u64,
        /// Number of blocks of the image.
        blocks: u64,
    },
    /// The map is sealed, and its key is needed.
    #[error("is sealed, and the key is needed")]
    Sealed,
    /// The map is not sealed with the given key.
    #[error("{0}")]
    Seal(&'static str),
}

impl Error {
    /// Returns the error for the bytes at an offset of a file.
    pub fn damaged(offset: u64, reason: impl Into<String>) -> Self {
        Self::Damaged { offset, reason: reason.into() }
    }
}
