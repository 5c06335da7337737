//! The definition of the digest of a block.

use crate::{BlockSize, Digest, Digester, State};

/// Computes the digest of a block, which is the plain digest of its bytes. The last block is not
/// padded.
#[derive(Clone, Debug)]
pub struct Leaf {
    digester: Digester,
    start: State,
    block_size: usize,
}

impl Leaf {
    /// Creates the leaf for blocks of `block_size`, hashed by `digester`.
    pub fn new(digester: &Digester, block_size: BlockSize) -> Self {
        Self { digester: digester.clone(), start: digester.start(), block_size: block_size.get() }
    }

    /// Returns the digester that hashes the blocks.
    pub fn digester(&self) -> &Digester {
        &self.digester
    }

    /// Returns the length of a whole block in bytes.
    pub fn block_size(&self) -> usize {
        self.block_size
    }

    /// Returns the length of a digest in bytes, 0 for the algorithm `null`.
    pub fn digest_size(&self) -> usize {
        self.digester.algorithm().digest_size()
    }

    /// Returns the digest of a whole zero block.
    pub fn zero_block(&self) -> Digest {
        self.finish(self.after_zeros(self.block_size as u64))
    }

    /// Writes the digests of `blocks`, which all have the same length, one after the other to
    /// `digests`.
    pub(crate) fn finish_many(&self, blocks: &[&[u8]], digests: &mut [u8]) {
        self.digester.finish_many(&self.start, blocks, digests);
    }

    /// Returns the state of a block that begins with `count` zeros.
    pub(super) fn after_zeros(&self, count: u64) -> State {
        let mut state = self.start.clone();
        state.update_zeros(count);
        state
    }

    /// Returns the digest of a complete block.
    pub(super) fn finish(&self, state: State) -> Digest {
        state.finalize()
    }
}
