//! The root of the tree over the pages of a map.

use blkhash::{BlockSize, Digest, Tree};

use crate::Header;
use crate::page::{Hash, PageHasher, to_hash};

/// Computes the root from the hashes of pages, in order.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    tree: Tree,
    hasher: PageHasher,
    header: Header,
    zero_block: Digest,
}

impl Root {
    pub(crate) fn new(header: &Header, zero_block: &Digest) -> Self {
        let hasher = PageHasher::new();
        let tree = Tree::new(hasher.leaf(), BlockSize::PAGE);
        Self { tree, hasher, header: *header, zero_block: *zero_block }
    }

    /// Appends the hashes of stored pages, one after the other.
    pub(crate) fn hashes(&mut self, hashes: &[u8]) {
        let Ok(()) = self.tree.push(hashes);
    }

    /// Appends pages of `blocks` zero blocks. Only the last page of an image is not full.
    pub(crate) fn zero_blocks(&mut self, blocks: u64) {
        let per_page = self.header.blocks_per_page();
        for (pages, blocks) in [(blocks / per_page, per_page), (1, blocks % per_page)] {
            if pages > 0 && blocks > 0 {
                let hash = self.hasher.zero_blocks(&self.header, &self.zero_block, blocks as usize);
                let hash = Digest::try_from(&hash[..]).expect("a hash");
                let Ok(()) = self.tree.push_run(&hash, pages);
            }
        }
    }

    pub(crate) fn finish(self) -> Hash {
        let Ok((root, ())) = self.tree.finish();
        to_hash(&root)
    }
}
