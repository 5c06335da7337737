//! What the digest of a block is: the one place that says it.

use crate::{BlockSize, Digest, Digester, State};

/// Makes the digest of a block: the plain digest of its bytes, the last block as short as it is.
#[derive(Clone, Debug)]
pub struct Leaf {
    digester: Digester,
    start: State,
    block_size: usize,
}

impl Leaf {
    /// The leaf of blocks of this size that `digester` hashes.
    pub fn new(digester: &Digester, block_size: BlockSize) -> Self {
        Self { digester: digester.clone(), start: digester.start(), block_size: block_size.get() }
    }

    /// What hashes.
    pub fn digester(&self) -> &Digester {
        &self.digester
    }

    /// Length of a whole block in bytes.
    pub fn block_size(&self) -> usize {
        self.block_size
    }

    /// Length of a digest in bytes: 0 for the algorithm `null`.
    pub fn digest_size(&self) -> usize {
        self.digester.algorithm().digest_size()
    }

    /// The digest of a whole block of zeros.
    pub fn zero_block(&self) -> Digest {
        self.finish(self.after_zeros(self.block_size as u64))
    }

    /// Writes the digests of `blocks`, all of one length, one after the other to `digests`.
    pub(crate) fn finish_many(&self, blocks: &[&[u8]], digests: &mut [u8]) {
        self.digester.finish_many(&self.start, blocks, digests);
    }

    /// A block that begins with `count` zeros.
    pub(super) fn after_zeros(&self, count: u64) -> State {
        let mut state = self.start.clone();
        state.update_zeros(count);
        state
    }

    /// The digest of a block that has taken all its bytes.
    pub(super) fn finish(&self, state: State) -> Digest {
        state.finalize()
    }
}
