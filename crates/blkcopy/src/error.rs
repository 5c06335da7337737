//! Reasons why a copy failed.

use std::io;

use blkhash::SinkError;

/// The reason why a copy failed. The destination may have been written to in part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source could not be read, or changed.
    #[error(transparent)]
    Source(blksum::Error),
    /// The destination is smaller than the source.
    #[error("has {size} bytes, and the source {needed}")]
    Small {
        /// Size of the destination in bytes.
        size: u64,
        /// Size of the source in bytes.
        needed: u64,
    },
    /// The destination could not be made ready, or completed.
    #[error("{what}")]
    Destination {
        /// What failed.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// A part of the destination could not be written, zeroed or compared.
    #[error("{length} bytes at {offset} cannot be {what}")]
    Range {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
        /// What could not be done with them: `written`, `zeroed`, `deallocated` or `read`.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The map of what the destination has cannot be read, or does not know every block.
    #[error(transparent)]
    Base(blkmap::Error),
    /// The map that is the log of the copy cannot be written or read.
    #[error(transparent)]
    Log(blkmap::Error),
    /// A delta is damaged, or ends early.
    #[error("the delta at {at}: {reason}")]
    Delta {
        /// Offset in the stream.
        at: u64,
        /// The problem.
        reason: String,
    },
    /// A block of the destination is neither in the map which a delta was made for, nor as it becomes.
    #[error("{length} bytes at {offset} are not those that the delta was made for")]
    NotBase {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// The destination is a device or an export that is too small for a delta.
    #[error("has {size} bytes, and the delta needs {needed}")]
    SmallForDelta {
        /// Size of the destination in bytes.
        size: u64,
        /// Size that it needs, the larger one of those before and after the delta.
        needed: u64,
    },
    /// A delta leaves nothing of the content, so it cannot tell whether that was the right one.
    #[error("the delta leaves no content, so nothing tells whether it was made for this one")]
    Empties,
    /// The destination is a file of another size than the content of which only a part is written.
    #[error("has {size} bytes, and not {needed}")]
    BaseSize {
        /// Size of the destination in bytes.
        size: u64,
        /// Size that it should have.
        needed: u64,
    },
    /// The source does not have the checksum that was expected. A delta of it was not completed.
    #[error("has the checksum {0}, and not the expected one")]
    Unexpected(blkhash::Digest),
    /// No checksum was to be computed, or only empty ones, so reading the destination back would compare nothing.
    #[error("has no checksum to be compared")]
    NoChecksum,
    /// The destination could not be read back.
    #[error("cannot be read back")]
    ReadBack(#[source] blksum::Error),
    /// The destination holds something else than what was written.
    #[error("holds something else than what was written{}", place(.at))]
    Differs {
        /// Offset and length of the first extent that differs, in bytes, if the source can be read again.
        at: Option<(u64, u64)>,
    },
}

impl Error {
    /// Tells errors of the destination from errors of the source.
    pub(crate) fn of_pass(error: blksum::Error) -> Self {
        match error {
            blksum::Error::Sink(error) => Self::of_sink(error),
            error => Self::Source(error),
        }
    }

    /// Unwraps an error of what takes the content.
    pub(crate) fn of_sink(error: SinkError) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => *error,
            Err(error) => Self::Source(blksum::Error::Sink(error)),
        }
    }
}

fn place(at: &Option<(u64, u64)>) -> String {
    at.map(|(offset, length)| format!(": {length} bytes at {offset} differ")).unwrap_or_default()
}
