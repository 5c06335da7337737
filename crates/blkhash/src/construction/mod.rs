//! The constructions, which make one checksum from the digests of blocks. Together with the table
//! of algorithms, they determine the value of a checksum.

mod concat;
mod dm_verity;
mod flat;
mod fold;
mod fs_verity;
mod merkle;
mod outer;
mod streams;

use std::fmt;
use std::str::FromStr;

pub(crate) use self::fold::{Crew, Fold};
pub use self::fs_verity::FsVerityDescriptor;
use crate::block::Leaf;
use crate::{Algorithm, BlockSize, Digester, Error, Salt, Strength};

/// The definition of a checksum over the content of an image, specified in docs/reference/constructions.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Construction {
    /// Deals the digests of blocks to N streams in turn. The checksum is the digest of the streams'
    /// digests.
    Streams(Streams),
    /// The digest of the blocks' digests and the length of the content.
    Flat,
    /// The digest of the blocks' digests.
    Concat,
    /// The digest of the content, as in `sha256sum`.
    Linear,
    /// The file digest of fs-verity. The digests of blocks are the leaves of a Merkle tree.
    FsVerity,
    /// The root hash of dm-verity. The digests of blocks are the leaves of a Merkle tree.
    DmVerity,
}

/// A number of streams, from 1 to 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Streams(u8);

impl Streams {
    /// Returns a number of streams, or `None` if `count` is not from 1 to 128.
    pub const fn new(count: usize) -> Option<Self> {
        if count >= 1 && count <= MAX_STREAMS { Some(Self(count as u8)) } else { None }
    }

    /// Returns the number.
    pub const fn count(self) -> usize {
        self.0 as usize
    }
}

impl Construction {
    /// Returns whether the content is cut into blocks. If so, the value depends on the block size,
    /// and zero blocks are not hashed.
    pub const fn has_blocks(self) -> bool {
        !matches!(self, Self::Linear)
    }

    /// Returns the block size that users of the construction expect: as in its other programs.
    pub const fn default_block_size(self) -> BlockSize {
        match self {
            Self::FsVerity | Self::DmVerity => BlockSize::PAGE,
            _ => BlockSize::DEFAULT,
        }
    }

    /// Returns the maximum length of a salt in bytes, 0 if there is none.
    pub const fn max_salt(self) -> usize {
        match self {
            Self::FsVerity => FsVerityDescriptor::MAX_SALT,
            Self::DmVerity => Salt::MAX,
            _ => 0,
        }
    }

    /// Returns whether a run of zero blocks costs about the same, however long it is.
    pub const fn skips_zero_runs(self) -> bool {
        matches!(self, Self::FsVerity | Self::DmVerity)
    }

    /// Returns whether the construction is defined for digests of `algorithm`.
    pub fn accepts(self, algorithm: Algorithm) -> bool {
        match self {
            Self::FsVerity => fs_verity::knows(algorithm),
            Self::DmVerity => {
                matches!(
                    algorithm.properties().strength,
                    Strength::Broken | Strength::Cryptographic
                )
            }
            _ => true,
        }
    }

    pub(crate) fn check_algorithm(self, algorithm: Algorithm) -> Result<(), Error> {
        if self.accepts(algorithm) {
            return Ok(());
        }
        let (construction, suitable) = match self {
            Self::FsVerity => ("fs-verity", "sha256 or sha512"),
            _ => ("dm-verity", "a cryptographic digest such as sha256"),
        };
        Err(Error::UnsuitableAlgorithm { algorithm: algorithm.name(), construction, suitable })
    }

    pub(crate) fn check_length(self, length: u64, block_size: BlockSize) -> Result<(), Error> {
        let block_size = block_size.into();
        if self == Self::DmVerity && (length == 0 || !length.is_multiple_of(block_size)) {
            return Err(Error::UnsuitableLength { length, block_size });
        }
        Ok(())
    }

    /// Returns the definition of the digest of a block.
    pub(crate) fn leaf(self, digester: &Digester, block_size: BlockSize, salt: &Salt) -> Leaf {
        match self {
            Self::FsVerity => fs_verity::leaf(digester, block_size, salt),
            Self::DmVerity => dm_verity::leaf(digester, block_size, salt),
            _ => Leaf::new(digester, block_size),
        }
    }

    /// Returns the computation over the digests of blocks, or `None` if there are no blocks.
    pub(crate) fn fold(
        self,
        leaf: &Leaf,
        block_size: BlockSize,
        salt: &Salt,
    ) -> Option<Box<dyn Fold>> {
        Some(match self {
            Self::Streams(count) => Box::new(streams::fold(leaf, count.count())),
            Self::Flat => Box::new(flat::fold(leaf)),
            Self::Concat => Box::new(concat::fold(leaf)),
            Self::Linear => return None,
            Self::FsVerity => Box::new(fs_verity::fold(leaf, block_size, salt)),
            Self::DmVerity => Box::new(dm_verity::fold(leaf, block_size)),
        })
    }
}

impl Default for Construction {
    /// Returns `streams:4`.
    fn default() -> Self {
        Self::Streams(Streams(DEFAULT_STREAMS))
    }
}

impl fmt::Display for Construction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Streams(streams) => write!(f, "{STREAMS}:{}", streams.count()),
            _ => {
                let row = NAMES.iter().find(|(_, known)| known == self);
                f.write_str(row.expect("every construction has a name").0)
            }
        }
    }
}

impl FromStr for Construction {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || Error::UnknownConstruction(text.to_owned());
        if let Some((_, known)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*known);
        }
        match text.strip_prefix(STREAMS).ok_or_else(unknown)? {
            "" => Ok(Self::default()),
            rest => {
                let count = rest.strip_prefix(':').ok_or_else(unknown)?;
                let plain = count.bytes().all(|byte| byte.is_ascii_digit());
                let count = count.parse().ok().filter(|_| plain).ok_or_else(unknown)?;
                Streams::new(count).map(Self::Streams).ok_or_else(unknown)
            }
        }
    }
}

/// The constructions without a parameter.
const NAMES: [(&str, Construction); 5] = [
    ("flat", Construction::Flat),
    ("concat", Construction::Concat),
    ("linear", Construction::Linear),
    ("fs-verity", Construction::FsVerity),
    ("dm-verity", Construction::DmVerity),
];

/// The name of [`Construction::Streams`], without the number of streams.
const STREAMS: &str = "streams";

/// The number of streams in blkhash 0.3 to 0.7. docs/inside/decisions/default-construction.md says why it stays.
const DEFAULT_STREAMS: u8 = 4;

/// More streams would only cost memory.
const MAX_STREAMS: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in [
            "streams:1",
            "streams:4",
            "streams:128",
            "flat",
            "concat",
            "linear",
            "fs-verity",
            "dm-verity",
        ] {
            assert_eq!(name.parse::<Construction>().unwrap().to_string(), name);
        }
        assert_eq!("streams".parse::<Construction>().unwrap(), Construction::default());
    }

    #[test]
    fn other_names_are_refused() {
        for name in ["", "stream", "streams:", "streams:0", "streams:129", "streams:+4", "Flat"] {
            assert!(name.parse::<Construction>().is_err(), "{name}");
        }
    }
}
