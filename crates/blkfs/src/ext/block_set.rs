//! A set of blocks.

use std::collections::HashMap;

/// A set of numbers of blocks, in memory of at most a bit for each block that is near one in the set.
#[derive(Default)]
pub(super) struct BlockSet {
    chunks: HashMap<u64, Box<[u64; 16]>>,
}

impl BlockSet {
    /// Adds a block. Returns whether it was not in the set.
    pub fn insert(&mut self, block: u64) -> bool {
        let chunk = self.chunks.entry(block / 1024).or_default();
        let word = &mut chunk[(block % 1024 / 64) as usize];
        let bit = 1 << (block % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_is_new_once() {
        let mut set = BlockSet::default();
        for block in [0, 63, 64, 1023, 1024, u64::MAX] {
            assert!(set.insert(block));
            assert!(!set.insert(block));
        }
        assert!(set.insert(1));
    }
}
