use crate::{Algorithm, BlockSize, Construction, InvalidBlockSize, InvalidSalt};

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
        "unknown construction '{0}': use streams, streams:N (N from 1 to 128), flat, \
         concat, linear, fs-verity or dm-verity"
    )]
    UnknownConstruction(String),
    /// The block size is out of range or not a power of two.
    #[error(transparent)]
    InvalidBlockSize(#[from] InvalidBlockSize),
    /// The construction is not defined for digests of this algorithm.
    #[error("{construction} has no {algorithm}: {}", suitable(*.construction))]
    UnsuitableAlgorithm {
        /// The algorithm.
        algorithm: Algorithm,
        /// The construction.
        construction: Construction,
    },
    /// The construction has no salt, or a shorter one.
    #[error("{}", salts(*.0))]
    UnsuitableSalt(Construction),
    /// The text is not a salt.
    #[error(transparent)]
    InvalidSalt(#[from] InvalidSalt),
    /// The construction is not defined for content of this length.
    #[error(
        "{construction} is defined for whole blocks of {block_size} bytes, and the content has \
         {length} bytes"
    )]
    UnsuitableLength {
        /// The construction.
        construction: Construction,
        /// The length of the content in bytes.
        length: u64,
        /// The length of a block.
        block_size: BlockSize,
    },
    /// The named implementation does not exist or cannot run, with the reason.
    #[error("implementation '{0}' cannot be used: {1}")]
    UnusableImplementation(String, String),
}

/// Returns which algorithms a construction is defined for.
fn suitable(construction: Construction) -> &'static str {
    match construction {
        Construction::FsVerity => "use sha256 or sha512",
        _ => "use a cryptographic digest such as sha256",
    }
}

/// Returns which salts a construction has.
fn salts(construction: Construction) -> String {
    match construction.max_salt() {
        0 => format!("{construction} has no salt: fs-verity and dm-verity have one"),
        max => format!("a salt of {construction} has at most {max} bytes"),
    }
}
