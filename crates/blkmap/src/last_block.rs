//! Compares blocks of which one may be the short last block of its image.

use blkhash::{Comparison, Digest};

/// A block of one side.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    /// Length in bytes.
    pub(crate) length: u64,
    pub(crate) digest: &'a [u8],
    /// Digest of the block padded with zeros, if it is short and this is known.
    pub(crate) padded: Option<&'a Digest>,
    /// Whether all of its bytes are zeros.
    pub(crate) is_zero: bool,
}

/// Compares two blocks of an image with blocks of `block_size`. A shorter one is padded with zeros.
pub(crate) fn compare(left: Block<'_>, right: Block<'_>, block_size: u64) -> Comparison {
    let whole = |block: Block<'_>| match block.padded {
        _ if block.length == block_size => Some(block.digest.to_vec()),
        padded => padded.map(|digest| digest.as_bytes().to_vec()),
    };
    let is_equal = if left.length == right.length {
        // Equal blocks are equal when they are padded, too. A map that was made up may say otherwise.
        let padded = left.padded.zip(right.padded).filter(|_| left.length < block_size);
        left.digest == right.digest && padded.is_none_or(|(left, right)| left == right)
    } else {
        whole(left).is_some_and(|digest| Some(digest) == whole(right))
    };
    Comparison::new(left.is_zero, right.is_zero, is_equal)
}
