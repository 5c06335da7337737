//! The constructions, which make one checksum from the digests of blocks. Together with the table
//! of algorithms, they determine the value of a checksum.

mod concat;
mod flat;
mod fold;
mod outer;
mod streams;

use std::fmt;
use std::str::FromStr;

pub(crate) use self::fold::{Crew, Fold};
use crate::Error;
use crate::block::Leaf;

/// The definition of a checksum over the content of an image, specified in docs/constructions.md.
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

    /// Returns the computation over the digests of blocks, or `None` if there are no blocks.
    pub(crate) fn fold(self, leaf: &Leaf) -> Option<Box<dyn Fold>> {
        Some(Box::new(match self {
            Self::Streams(count) => streams::fold(leaf, count.count()),
            Self::Flat => flat::fold(leaf),
            Self::Concat => concat::fold(leaf),
            Self::Linear => return None,
        }))
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
const NAMES: [(&str, Construction); 3] = [
    ("flat", Construction::Flat),
    ("concat", Construction::Concat),
    ("linear", Construction::Linear),
];

/// The name of [`Construction::Streams`], without the number of streams.
const STREAMS: &str = "streams";

/// The number of streams in blkhash 0.3 to 0.7.
const DEFAULT_STREAMS: u8 = 4;

/// More streams would only cost memory.
const MAX_STREAMS: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["streams:1", "streams:4", "streams:128", "flat", "concat", "linear"] {
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
