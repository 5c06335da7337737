use crate::{InvalidBlockSize, InvalidSalt};

/// The error of choosing parameters or an implementation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No algorithm has this name.
    #[error("unknown digest '{0}'")]
    UnknownAlgorithm(String),
    /// `blake2b` alone is ambiguous: 512 bits in coreutils, 256 bits in btrfs.
    #[error("'blake2b' is ambiguous: use blake2b512 (as in b2sum) or blake2b256 (as in btrfs)")]
    AmbiguousAlgorithm,
    /// SipHash is keyed. Without a secret key it protects less than other hashes of the same speed.
    #[error(
        "siphash is no checksum without a secret key: use xxh3 against accidents, \
         blake3 or sha256 against attackers"
    )]
    KeyedAlgorithm,
    /// No construction has this name.
    #[error(
        "unknown construction '{0}': use streams, streams:N (N from 1 to 128), flat, \
         concat, linear, fs-verity or dm-verity"
    )]
    UnknownConstruction(String),
    /// The block size is out of range or not a power of two.
    #[error(transparent)]
    InvalidBlockSize(#[from] InvalidBlockSize),
    /// The construction is not defined for digests of this algorithm.
    #[error("{construction} has no {algorithm}: use {suitable}")]
    UnsuitableAlgorithm {
        /// Name of the algorithm.
        algorithm: &'static str,
        /// Name of the construction.
        construction: &'static str,
        /// Algorithms that it is defined for, in words.
        suitable: &'static str,
    },
    /// The construction has no salt.
    #[error("{0} has no salt: fs-verity and dm-verity have one")]
    NoSalt(String),
    /// The salt is longer than the construction's.
    #[error("a salt of {construction} has at most {max} bytes")]
    LongSalt {
        /// Name of the construction.
        construction: String,
        /// Maximum length in bytes.
        max: usize,
    },
    /// The text is not a salt.
    #[error(transparent)]
    InvalidSalt(#[from] InvalidSalt),
    /// The length of the content is not a multiple of the block size, or 0. dm-verity is not defined for
    /// such content.
    #[error(
        "dm-verity is defined for whole blocks of {block_size} bytes, and the content has {length} bytes"
    )]
    UnsuitableLength {
        /// Length of the content in bytes.
        length: u64,
        /// Length of a block in bytes.
        block_size: u64,
    },
    /// The named implementation does not exist or cannot run, with the reason.
    #[error("implementation '{0}' cannot be used: {1}")]
    UnusableImplementation(String, String),
}
