//! The places of the blocks of a tree in a file: the root's block first, then level by level down.

use blkhash::{Algorithm, BlockSize, TreeShape};

/// The layout of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    shape: TreeShape,
    start: u64,
    leaves: u64,
    /// Number of blocks of each level, the lowest first.
    levels: Vec<u64>,
}

impl Layout {
    /// Returns the layout of the tree of `leaves` blocks of data, which begins at the offset `start` of a
    /// file. `None` if its end is past 2^63 - 1.
    pub fn new(
        algorithm: Algorithm,
        block_size: BlockSize,
        start: u64,
        leaves: u64,
    ) -> Option<Self> {
        let shape = TreeShape::new(algorithm, block_size);
        let levels = shape.levels(leaves);
        let blocks = levels.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count))?;
        let end = blocks.checked_mul(block_size.into())?.checked_add(start)?;
        i64::try_from(end).ok()?;
        Some(Self { shape, start, leaves, levels })
    }

    /// Returns the shape of the tree.
    pub fn shape(&self) -> &TreeShape {
        &self.shape
    }

    /// Returns the number of blocks of data.
    pub fn leaves(&self) -> u64 {
        self.leaves
    }

    /// Returns the number of blocks of each level, from the lowest level up. One block of data has no
    /// tree: its digest is the root.
    pub fn levels(&self) -> &[u64] {
        &self.levels
    }

    /// Returns the number of blocks of the tree.
    pub fn blocks(&self) -> u64 {
        self.levels.iter().sum()
    }

    /// Returns the offset of a block in the file.
    pub fn offset(&self, level: usize, index: u64) -> u64 {
        let above: u64 = self.levels[level + 1..].iter().sum();
        self.start + (above + index) * self.shape.block_size() as u64
    }

    /// Returns the offset of the tree in the file.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns the offset of the end of the tree in the file.
    pub fn end(&self) -> u64 {
        self.start + self.blocks() * self.shape.block_size() as u64
    }

    /// Returns the number of digests in a block.
    pub fn digests_in(&self, level: usize, index: u64) -> usize {
        let below = if level == 0 { self.leaves } else { self.levels[level - 1] };
        let arity = self.shape.arity() as u64;
        (below - index * arity).min(arity) as usize
    }

    /// Returns the blocks of data below a block: the number of the first one, and the one after the last.
    pub fn data_below(&self, level: usize, index: u64) -> (u64, u64) {
        let mut span = 1_u64;
        for _ in 0..=level {
            span = span.saturating_mul(self.shape.arity() as u64);
        }
        (index.saturating_mul(span), (index + 1).saturating_mul(span).min(self.leaves))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_adjacent() {
        let block = 4096_u64;
        let layout = Layout::new(Algorithm::Sha256, BlockSize::PAGE, 8192, 128 * 128 + 1).unwrap();
        assert_eq!(layout.levels(), [129, 2, 1]);
        assert_eq!(layout.offset(2, 0), 8192);
        assert_eq!(layout.offset(1, 0), 8192 + block);
        assert_eq!(layout.offset(1, 1), 8192 + 2 * block);
        assert_eq!(layout.offset(0, 0), 8192 + 3 * block);
        assert_eq!(layout.offset(0, 128), 8192 + 131 * block);
        assert_eq!(layout.end(), 8192 + 132 * block);
        assert_eq!(layout.digests_in(0, 0), 128);
        assert_eq!(layout.digests_in(0, 128), 1);
        assert_eq!(layout.digests_in(1, 1), 1);
        assert_eq!(layout.digests_in(2, 0), 2);
        assert_eq!(layout.data_below(0, 128), (16384, 16385));
        assert_eq!(layout.data_below(1, 0), (0, 16384));
        assert_eq!(layout.data_below(2, 0), (0, 16385));
    }

    #[test]
    fn one_block_has_no_tree() {
        let layout = Layout::new(Algorithm::Sha256, BlockSize::PAGE, 4096, 1).unwrap();
        assert_eq!((layout.blocks(), layout.end()), (0, 4096));
    }

    #[test]
    fn the_end_is_a_valid_offset() {
        let new = |start, leaves| Layout::new(Algorithm::Sha512, BlockSize::MIN, start, leaves);
        assert!(new(0, 1 << 54).is_some());
        assert!(new(i64::MAX as u64, 2).is_none());
        assert!(new(0, u64::MAX).is_none());
    }
}
