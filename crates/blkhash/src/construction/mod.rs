//! How the digests of blocks become one checksum. Whatever changes a checksum's value is in here.

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

/// What a checksum is, given the digests of the blocks. docs/constructions.md specifies them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Construction {
    /// Blocks are dealt to so many streams in turn; the checksum is the digest of the streams'
    /// digests.
    Streams(Streams),
    /// The digest of the blocks' digests and the length of the content.
    Flat,
    /// The digest of the blocks' digests.
    Concat,
    /// The digest of the content, as `sha256sum` has it.
    Linear,
}

/// A number of streams, from 1 to 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Streams(u8);

impl Streams {
    /// So many streams, if that is from 1 to 128.
    pub const fn new(count: usize) -> Option<Self> {
        if count >= 1 && count <= MAX_STREAMS { Some(Self(count as u8)) } else { None }
    }

    /// How many.
    pub const fn count(self) -> usize {
        self.0 as usize
    }
}

impl Construction {
    /// Whether the content is cut into blocks: then its value depends on the size of these, and
    /// zeros cost nothing for each byte.
    pub const fn has_blocks(self) -> bool {
        !matches!(self, Self::Linear)
    }

    /// What it does with the digests of blocks, if it has any.
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
    /// `streams:4`.
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

/// The constructions that have no parameter.
const NAMES: [(&str, Construction); 3] = [
    ("flat", Construction::Flat),
    ("concat", Construction::Concat),
    ("linear", Construction::Linear),
];

/// [`Construction::Streams`], before the number of them.
const STREAMS: &str = "streams";

/// The streams of blkhash 0.3 to 0.7.
const DEFAULT_STREAMS: u8 = 4;

/// More streams than that would only cost memory.
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
