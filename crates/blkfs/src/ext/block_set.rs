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

    pub fn contains(&self, block: u64) -> bool {
        let chunk = self.chunks.get(&(block / 1024));
        chunk.is_some_and(|chunk| chunk[(block % 1024 / 64) as usize] >> (block % 64) & 1 == 1)
    }
}

/// What is wrong with a block that has two uses.
pub(super) const IN_USE: &str = "is in use for something else";

/// Blocks with metadata of inodes. Each is read once for each use, so that what one use reports does not depend on whether the
/// others are looked at.
#[derive(Default)]
pub(super) struct Seen {
    pub maps: BlockSet,
    pub attributes: BlockSet,
    /// Blocks of directories, and of the orphan file.
    pub content: BlockSet,
}

impl Seen {
    /// Returns whether a block has two uses, which is damage.
    pub fn is_shared(&self, block: u64) -> bool {
        let sets = [&self.maps, &self.attributes, &self.content];
        sets.iter().filter(|set| set.contains(block)).count() > 1
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
            assert!(!set.insert(block) && set.contains(block));
        }
        assert!(!set.contains(1) && !set.contains(2048));
        assert!(set.insert(1));
    }
}
