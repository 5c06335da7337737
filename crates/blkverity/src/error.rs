use std::io;

use blkhash::Algorithm;

use crate::SuperblockError;

/// Reason why a tree cannot be written or verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file of the tree ends before the superblock.
    #[error("no superblock of dm-verity at {offset}: it ends at {size}")]
    NoSuperblock {
        /// Offset of the superblock in bytes.
        offset: u64,
        /// Size of the file in bytes.
        size: u64,
    },
    /// The file of the tree has no superblock that is supported.
    #[error("at {offset}: {reason}")]
    Superblock {
        /// Offset of the superblock in bytes.
        offset: u64,
        /// The reason.
        reason: SuperblockError,
    },
    /// A superblock cannot have these fields.
    #[error(transparent)]
    Fields(#[from] SuperblockError),
    /// The construction is not defined for the digest, the salt or the length of the data.
    #[error(transparent)]
    Hash(#[from] blkhash::Error),
    /// The tree ends past 2^63 - 1.
    #[error("the hash tree would be too large")]
    TooLarge,
    /// The offset of the superblock is no multiple of 512.
    #[error("offset {0} is no multiple of 512")]
    UnalignedSuperblock(u64),
    /// The offset of a tree without a superblock is no multiple of the size of its blocks.
    #[error("offset {0} is no multiple of the hash block size")]
    UnalignedTree(u64),
    /// The file of the tree ends before the tree.
    #[error("is cut off: it has {size} bytes, and its tree ends at {end}")]
    CutOff {
        /// Size of the file in bytes.
        size: u64,
        /// Offset of the end of the tree in bytes.
        end: u64,
    },
    /// The root hash has another length than this digest's.
    #[error("a root hash of {0} has {digits} digits", digits = 2 * .0.digest_size())]
    RootLength(Algorithm),
    /// The data is shorter than the tree's.
    #[error("has {size} bytes, and the tree is for {length}")]
    Short {
        /// Size of the data in bytes.
        size: u64,
        /// Length of the data that the tree covers, in bytes.
        length: u64,
    },
    /// There is no data, and the digest belongs to other data.
    #[error("is empty, and the digest does not match an empty image")]
    Empty,
    /// The file of the tree could not be read, or changed while it was read.
    #[error(transparent)]
    Stored(#[from] blkimage::Error),
    /// The tree could not be written.
    #[error(transparent)]
    Write(io::Error),
}
