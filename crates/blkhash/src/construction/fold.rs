//! The computation that makes a checksum from the digests of blocks.

use std::fmt::Debug;

use crate::Digest;

/// Takes the digests of an image's blocks in order and makes one checksum from them.
///
/// Every block except the last is whole.
pub(crate) trait Fold: Debug + Send + Sync {
    /// Appends the digests of the next blocks, one after the other.
    fn digests(&mut self, digests: &[u8]);

    /// Appends `count` whole zero blocks. `crew` may help with a long run.
    fn zero_blocks(&mut self, count: u64, crew: &dyn Crew);

    /// Returns the checksum of all blocks. `length` is the length of the content in bytes.
    fn finalize(self: Box<Self>, length: u64) -> Digest;

    /// Returns an independent copy.
    fn boxed_clone(&self) -> Box<dyn Fold>;
}

/// Threads that share work.
pub(crate) trait Crew {
    /// Returns the maximum number of threads.
    fn size(&self) -> usize;

    /// Runs `work` on up to `count` threads, at least once, and returns when all are done.
    fn run(&self, count: usize, work: &(dyn Fn() + Sync));
}
