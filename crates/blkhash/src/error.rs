use crate::InvalidBlockSize;

/// Why parameters were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No algorithm has this name.
    #[error("unknown digest '{0}'")]
    UnknownAlgorithm(String),
    /// `blake2b` has 512 bits for coreutils and 256 for btrfs.
    #[error(
        "'blake2b' is ambiguous: say blake2b512 (as b2sum has it) or blake2b256 (as btrfs has it)"
    )]
    AmbiguousAlgorithm,
    /// Without a secret key SipHash protects less than a hash as fast does.
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
    /// Not a power of two in range.
    #[error(transparent)]
    InvalidBlockSize(#[from] InvalidBlockSize),
    /// An implementation that was asked for by name.
    #[error("implementation '{0}' cannot be used: {1}")]
    UnusableImplementation(String, String),
}
