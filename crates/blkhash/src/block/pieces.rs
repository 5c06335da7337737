//! A block that comes in pieces.

use super::Leaf;
use crate::zero::is_zero;
use crate::{Digest, State};

/// Hashes one block at a time from pieces of any size. Zeros at its beginning are only counted
/// until something else comes, so a block of zeros costs no hashing.
#[derive(Clone, Debug)]
pub struct BlockPieces {
    leaf: Leaf,
    length: u64,
    /// The hash of what was taken; `None` as long as that is zeros only.
    state: Option<State>,
}

impl BlockPieces {
    /// A block that has taken nothing yet.
    pub fn new(leaf: Leaf) -> Self {
        Self { leaf, length: 0, state: None }
    }

    /// Takes the next bytes.
    pub fn update(&mut self, data: &[u8]) {
        if self.state.is_some() || !is_zero(data) {
            let (leaf, length) = (&self.leaf, self.length);
            self.state.get_or_insert_with(|| leaf.after_zeros(length)).update(data);
        }
        self.length += data.len() as u64;
    }

    /// Takes `count` zero bytes next.
    pub fn zero(&mut self, count: u64) {
        if let Some(state) = &mut self.state {
            state.update_zeros(count);
        }
        self.length += count;
    }

    /// Bytes taken since the last block ended.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether all of them are zeros.
    pub fn is_zero(&self) -> bool {
        self.state.is_none()
    }

    /// Ends the block: the next byte begins another one.
    pub fn finish(&mut self) -> Digest {
        let state = self.state.take().unwrap_or_else(|| self.leaf.after_zeros(self.length));
        self.length = 0;
        self.leaf.finish(state)
    }

    /// Ends a block of zeros without hashing it.
    pub fn skip(&mut self) {
        debug_assert!(self.is_zero());
        self.length = 0;
    }
}
