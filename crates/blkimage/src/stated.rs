//! Checksums that an image states of its own content.
//!
//! Digests are only handed out, because this crate computes none. Checksums of parts, such as those of chunks, are
//! compared by every read.

use std::ops::Range;

use crate::implanted::Implanted;
use crate::probe::Format;

/// The checksums that an image states of its own content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stated {
    /// Digests of all of the content. There may be several of one algorithm.
    pub digests: Vec<StatedDigest>,
    /// The name of the checksums of its parts, which every read compares, as in `Adler-32 of each chunk`. `None` if there are
    /// none, or not all parts have one.
    pub parts: Option<&'static str>,
    /// The MD5 that a raw image of ISO 9660 states of all but its last sectors.
    pub implanted: Option<Implanted>,
    /// CRC-32 checksums of parts of the content, in order, and of the file.
    pub sums: Vec<StatedSum>,
    /// Number of checksums of parts whose algorithm is not known.
    pub unknown_sums: usize,
}

/// A CRC-32 that an image states of a part of its content or of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatedSum {
    /// The checksum.
    pub crc32: u32,
    /// What it is of.
    pub of: SumOf,
}

/// What a [`StatedSum`] is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SumOf {
    /// The content.
    Content {
        /// The name of the part, as the image has it.
        name: String,
        /// The bytes, in order.
        ranges: Vec<Range<u64>>,
    },
    /// The bytes of the file.
    File(Range<u64>),
    /// These bytes, which are other checksums that are stated.
    Sums(Vec<u8>),
}

/// A digest of all of the content of an image, as it states it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatedDigest {
    /// The name of the algorithm, such as `md5`.
    pub algorithm: &'static str,
    /// The digest.
    pub digest: Vec<u8>,
}

impl StatedDigest {
    /// Creates a digest.
    pub fn new(algorithm: &'static str, digest: impl Into<Vec<u8>>) -> Self {
        Self { algorithm, digest: digest.into() }
    }
}

impl Format {
    /// Returns whether images of this format state checksums of their content.
    pub fn states_checksums(self) -> bool {
        matches!(self, Self::Dmg | Self::Ewf | Self::Simg)
    }
}
