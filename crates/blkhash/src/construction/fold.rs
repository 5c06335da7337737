//! What a construction does with the digests of blocks.

use std::fmt::Debug;

use crate::Digest;

/// Takes the digests of an image's blocks in order and makes the checksum of them.
///
/// Every block but the last is a whole one.
pub(crate) trait Fold: Debug + Send + Sync {
    /// Takes the digests of the next blocks, one after the other.
    fn digests(&mut self, digests: &[u8]);

    /// Takes the next `count` blocks, whole and all zeros. `crew` may help where there are many.
    fn zero_blocks(&mut self, count: u64, crew: &dyn Crew);

    /// The checksum of the blocks taken; `length` is that of the content in bytes.
    fn finalize(self: Box<Self>, length: u64) -> Digest;

    /// A copy that goes its own way.
    fn boxed_clone(&self) -> Box<dyn Fold>;
}

/// Threads that share work.
pub(crate) trait Crew {
    /// How many there are at most.
    fn size(&self) -> usize;

    /// Runs `work` on up to `count` threads, at least once, and returns when all are done.
    fn run(&self, count: usize, work: &(dyn Fn() + Sync));
}
