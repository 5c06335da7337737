//! Blocks that are hashed in pieces.

use super::Leaf;
use crate::zero::is_zero;
use crate::{Digest, State};

/// Hashes one block at a time from pieces of any size. Zeros at the start of a block are only
/// counted until other bytes come, so a zero block costs no hashing.
#[derive(Clone, Debug)]
pub struct BlockPieces {
    leaf: Leaf,
    length: u64,
    /// The hash of the block so far; `None` while all its bytes are zeros.
    state: Option<State>,
}

impl BlockPieces {
    /// Starts an empty block.
    pub fn new(leaf: Leaf) -> Self {
        Self { leaf, length: 0, state: None }
    }

    /// Appends `data` to the block.
    pub fn update(&mut self, data: &[u8]) {
        if self.state.is_some() || !is_zero(data) {
            let (leaf, length) = (&self.leaf, self.length);
            self.state.get_or_insert_with(|| leaf.after_zeros(length)).update(data);
        }
        self.length += data.len() as u64;
    }

    /// Appends `count` zero bytes to the block.
    pub fn zero(&mut self, count: u64) {
        if let Some(state) = &mut self.state {
            state.update_zeros(count);
        }
        self.length += count;
    }

    /// Returns the length of the block so far, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns whether all bytes of the block so far are zeros.
    pub fn is_zero(&self) -> bool {
        self.state.is_none()
    }

    /// Ends the block and returns its digest. The next byte begins another block.
    pub fn finish(&mut self) -> Digest {
        let state = self.state.take().unwrap_or_else(|| self.leaf.after_zeros(self.length));
        let length = std::mem::take(&mut self.length);
        self.leaf.finish(state, length)
    }

    /// Ends a zero block without hashing it.
    pub fn skip(&mut self) {
        debug_assert!(self.is_zero());
        self.length = 0;
    }
}
