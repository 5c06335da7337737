use crate::InvalidBlockSize;

/// The error of choosing parameters or an implementation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No algorithm has this name.
    #[error("unknown digest '{0}'")]
    UnknownAlgorithm(String),
    /// `blake2b` alone is ambiguous: 512 bits in coreutils, 256 bits in btrfs.
    #[error(
        "'blake2b' is ambiguous: say blake2b512 (as b2sum has it) or blake2b256 (as btrfs has it)"
    )]
    AmbiguousAlgorithm,
    /// SipHash is keyed. Without a secret key it protects less than other hashes of the same speed.
    #[error(
        "siphash is no checksum without a secret key: use xxh3 against accidents, \
         blake3 or sha256 against attackers"
    )]
    KeyedAlgorithm,
    /// No construction has this name.
    #[error(
        "unknown construction '{0}': use streams, streams:N (N from 1 to 128), flat, concat or linear"
    )]
    UnknownConstruction(String),
    /// The block size is out of range or not a power of two.
    #[error(transparent)]
    InvalidBlockSize(#[from] InvalidBlockSize),
    /// The named implementation does not exist or cannot run, with the reason.
    #[error("implementation '{0}' cannot be used: {1}")]
    UnusableImplementation(String, String),
}
