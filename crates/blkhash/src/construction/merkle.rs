//! A Merkle tree over the digests of blocks.

use super::{Crew, Fold};
use crate::block::Leaf;
use crate::{BlockSize, Digest, Tree};

/// The tree, and the step from its root to the checksum.
#[derive(Clone, Debug)]
pub(super) struct Merkle<E> {
    tree: Tree,
    end: E,
}

/// The step from the root to the checksum.
pub(super) trait End: Clone + std::fmt::Debug + Send + Sync + 'static {
    /// Returns the checksum of content of `length` bytes.
    fn checksum(self, root: Digest, length: u64) -> Digest;
}

impl<E: End> Merkle<E> {
    /// Creates a tree of blocks as long as the content's.
    pub(super) fn new(leaf: &Leaf, block_size: BlockSize, end: E) -> Self {
        Self { tree: Tree::new(leaf, block_size), end }
    }
}

impl<E: End> Fold for Merkle<E> {
    fn digests(&mut self, digests: &[u8]) {
        let Ok(()) = self.tree.push(digests);
    }

    fn zero_blocks(&mut self, count: u64, _crew: &dyn Crew) {
        let Ok(()) = self.tree.push_zero_blocks(count);
    }

    fn finalize(self: Box<Self>, length: u64) -> Digest {
        let Ok((root, ())) = self.tree.finish();
        self.end.checksum(root, length)
    }

    fn boxed_clone(&self) -> Box<dyn Fold> {
        Box::new(self.clone())
    }
}
