//! The definition of the digest of a block.

use crate::{BlockSize, Digest, Digester, Salt, State};

/// Computes the digest of a block: the plain digest of its bytes, or, with a salt, of the salt and its
/// bytes. Leaves are equal if every block has the same digest with both.
#[derive(Clone, Debug)]
pub struct Leaf {
    digester: Digester,
    /// The state after the salt.
    start: State,
    /// Bytes that are hashed before each block.
    prefix: Vec<u8>,
    block_size: usize,
    /// Whether a short last block is hashed as if zeros followed.
    is_padded: bool,
}

impl PartialEq for Leaf {
    fn eq(&self, other: &Self) -> bool {
        let Self { digester, start: _, prefix, block_size, is_padded } = self;
        digester.algorithm() == other.digester.algorithm()
            && *prefix == other.prefix
            && *block_size == other.block_size
            && *is_padded == other.is_padded
    }
}

impl Eq for Leaf {}

impl Leaf {
    /// Creates the leaf for blocks of `block_size`, hashed by `digester`.
    pub fn new(digester: &Digester, block_size: BlockSize) -> Self {
        let (digester, start) = (digester.clone(), digester.start());
        Self { digester, start, prefix: Vec::new(), block_size: block_size.get(), is_padded: false }
    }

    /// Creates a leaf that hashes `salt` before each block. A short last block is not padded.
    pub fn salted(digester: &Digester, block_size: BlockSize, salt: &Salt) -> Self {
        let mut leaf = Self::new(digester, block_size);
        leaf.start.update(salt.as_bytes());
        leaf.prefix = salt.as_bytes().to_vec();
        leaf
    }

    /// Creates a leaf that hashes `prefix` before each block, and pads the last block with zeros.
    pub(crate) fn padded(digester: &Digester, block_size: BlockSize, prefix: &[u8]) -> Self {
        let mut leaf = Self::new(digester, block_size);
        leaf.start.update(prefix);
        leaf.prefix = prefix.to_vec();
        leaf.is_padded = true;
        leaf
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
        self.finish(self.after_zeros(self.block_size as u64), self.block_size as u64)
    }

    /// Returns the digest of a block of a [`Tree`](crate::Tree), which may have another length. It is not
    /// padded.
    pub fn hash(&self, block: &[u8]) -> Digest {
        let mut digest = Digest::zeroed(self.digest_size());
        self.hash_many(&[block], digest.as_mut_bytes());
        digest
    }

    /// Writes the digests of `blocks`, which all have the same length, one after the other to
    /// `digests`.
    pub(crate) fn finish_many(&self, blocks: &[&[u8]], digests: &mut [u8]) {
        let is_short = blocks.first().is_some_and(|block| block.len() < self.block_size);
        if !(self.is_padded && is_short) {
            return self.hash_many(blocks, digests);
        }
        for (block, digest) in blocks.iter().zip(digests.chunks_exact_mut(self.digest_size())) {
            let mut state = self.start.clone();
            state.update(block);
            digest.copy_from_slice(self.finish(state, block.len() as u64).as_bytes());
        }
    }

    /// Like [`finish_many`](Self::finish_many), for blocks of any one length, which are not padded.
    pub(crate) fn hash_many(&self, blocks: &[&[u8]], digests: &mut [u8]) {
        self.digester.finish_many(&self.start, blocks, digests);
    }

    /// Returns the state of a block that begins with `count` zeros.
    pub(super) fn after_zeros(&self, count: u64) -> State {
        let mut state = self.start.clone();
        state.update_zeros(count);
        state
    }

    /// Returns the digest of a block whose `length` bytes are in `state`.
    pub(super) fn finish(&self, mut state: State, length: u64) -> Digest {
        if self.is_padded {
            state.update_zeros(self.block_size as u64 - length);
        }
        state.finalize()
    }
}
