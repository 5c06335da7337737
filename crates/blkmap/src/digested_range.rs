//! A digest of several blocks.

use blkhash::Digest;

/// Blocks in a row with one digest, as indexes of other programs have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestedRange {
    /// Index of the first block, counted from 0.
    pub first: u64,
    /// Number of blocks.
    pub count: u64,
    /// Digest of their content. The last block of an image may be short.
    pub digest: Digest,
}
