use std::fmt;

/// Why a file system cannot be verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An image could not be read, or changed while it was.
    #[error(transparent)]
    Image(#[from] blkimage::Error),
    /// There is no btrfs.
    #[error("{name}: no btrfs file system: no superblock has its magic number")]
    NotBtrfs {
        /// What was looked at.
        name: String,
    },
    /// No superblock is intact.
    #[error("{name}: no intact superblock: the one at {offset} {defect}")]
    Superblock {
        /// What was looked at.
        name: String,
        /// Where the first one lies.
        offset: u64,
        /// What is wrong with it.
        defect: String,
    },
    /// It uses something that is not known here.
    #[error("{0} is not supported")]
    Unsupported(String),
    /// The devices do not make up one file system.
    #[error("{0}")]
    Devices(String),
    /// A structure that everything else hangs on makes no sense.
    #[error("{reason} (logical {logical})")]
    Corrupt {
        /// What is wrong.
        reason: String,
        /// The logical address it is wrong for.
        logical: u64,
    },
    /// The implementation that was asked for cannot run here.
    #[error(transparent)]
    Implementation(#[from] blkhash::Error),
}

impl Error {
    pub(crate) fn corrupt(logical: u64, reason: impl fmt::Display) -> Self {
        Self::Corrupt { reason: reason.to_string(), logical }
    }
}

/// A result whose error is [`Error`] unless told.
pub type Result<T, E = Error> = std::result::Result<T, E>;
