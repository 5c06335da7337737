//! Checksums that an image states of its own content.
//!
//! Digests are only handed out, because this crate computes none. Checksums of parts, such as those of chunks, are
//! compared by every read.

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
        matches!(self, Self::Ewf | Self::Partclone | Self::Simg)
    }
}
