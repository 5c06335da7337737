//! Hashes blocks many at a time.

use crate::block::{BlockDigests, Leaf};
use crate::zero::is_zero;

/// Appends blocks to [`BlockDigests`]. Collects them until they fill the lanes of a kernel. Zero
/// blocks take no lane.
pub struct Batch<'a> {
    leaf: &'a Leaf,
    lanes: [&'a [u8]; LANES],
    filled: usize,
    digests: &'a mut BlockDigests,
}

impl<'a> Batch<'a> {
    /// Creates a batch without blocks.
    pub fn new(leaf: &'a Leaf, digests: &'a mut BlockDigests) -> Self {
        Self { leaf, lanes: [&[]; LANES], filled: 0, digests }
    }

    /// Appends the blocks of `content`. The last one may be short.
    pub fn update(&mut self, content: &'a [u8]) {
        for block in content.chunks(self.leaf.block_size()) {
            self.block(block);
        }
    }

    /// Appends a block.
    pub fn block(&mut self, block: &'a [u8]) {
        if block.len() == self.leaf.block_size() && is_zero(block) {
            return self.zero_blocks(1);
        }
        if self.filled == LANES || (self.filled > 0 && self.lanes[0].len() != block.len()) {
            self.hash_lanes();
        }
        self.lanes[self.filled] = block;
        self.filled += 1;
        self.digests.slot(self.leaf.digest_size(), block.len() as u64);
    }

    /// Appends `count` whole zero blocks.
    pub fn zero_blocks(&mut self, count: u64) {
        self.digests.push_zero_blocks(count, self.leaf.block_size());
    }

    /// Hashes the blocks that still wait.
    pub fn finish(mut self) {
        self.hash_lanes();
    }

    /// Hashes the waiting blocks. Their digests go to the last slots.
    fn hash_lanes(&mut self) {
        let slots = self.digests.last_slots(self.filled * self.leaf.digest_size());
        self.leaf.finish_many(&self.lanes[..self.filled], slots);
        self.filled = 0;
    }
}

/// Blocks passed to a kernel at once, a multiple of the lanes of every kernel.
const LANES: usize = 64;
