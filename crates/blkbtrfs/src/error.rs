use std::fmt;

/// Reason why a file system cannot be verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An image could not be read, or changed while it was read.
    #[error(transparent)]
    Image(#[from] blkimage::Error),
    /// There is no btrfs file system.
    #[error("{name}: no btrfs file system{}", among_partitions(*has_partitions))]
    NotBtrfs {
        /// Name of the device.
        name: String,
        /// Whether it has partitions, in which there is none either.
        has_partitions: bool,
    },
    /// A disk does not have a part, or not all of it.
    #[error("{name}: {reason}")]
    Part {
        /// Name of the disk or its part.
        name: String,
        /// Description of what it lacks.
        reason: String,
    },
    /// No superblock is intact.
    #[error("{name}: no intact superblock: the one at {offset} {defect}")]
    Superblock {
        /// Name of the device.
        name: String,
        /// Offset of the first defective superblock in bytes.
        offset: u64,
        /// Defect of that superblock.
        defect: String,
    },
    /// The file system uses an unsupported feature.
    #[error("{0} is not supported")]
    Unsupported(String),
    /// The devices do not form one file system.
    #[error("{0}")]
    Devices(String),
    /// A structure that all others depend on is invalid.
    #[error("{reason} (logical {logical})")]
    Corrupt {
        /// Description of the defect.
        reason: String,
        /// Logical address of the structure, or 0 if it has none.
        logical: u64,
    },
    /// The caller cancelled the verification.
    #[error("cancelled")]
    Cancelled,
    /// The requested implementation cannot run here.
    #[error(transparent)]
    Implementation(#[from] blkhash::Error),
}

impl Error {
    pub(crate) fn corrupt(logical: u64, reason: impl fmt::Display) -> Self {
        Self::Corrupt { reason: reason.to_string(), logical }
    }
}

fn among_partitions(has_partitions: bool) -> &'static str {
    if has_partitions { ", in none of its partitions either" } else { "" }
}

/// A result whose error is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;
