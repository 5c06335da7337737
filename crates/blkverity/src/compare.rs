//! Compares the blocks of a tree that is built with stored ones.

use blkhash::TreeBlocks;
use blkimage::Source;

use crate::Layout;

/// Receives the blocks of the part of a tree below a damaged block, and compares them with the stored ones.
/// The damaged block itself is left out.
pub(crate) struct Compare<'a> {
    stored: &'a dyn Source,
    layout: Layout,
    /// Level of the damaged block.
    top: usize,
    /// Number of the first block of the part on each level.
    first: Vec<u64>,
    /// First block and number of blocks of each run of blocks that differ, on each level.
    different: Vec<Vec<(u64, u64)>>,
    unnamed: u64,
    block: Vec<u8>,
}

impl<'a> Compare<'a> {
    /// Creates the comparison below block `index` of the level `top`.
    pub(crate) fn new(stored: &'a dyn Source, layout: &Layout, top: usize, index: u64) -> Self {
        let (start, _) = layout.data_below(top, index);
        let mut first = Vec::with_capacity(top + 1);
        let mut number = start;
        for _ in 0..=top {
            number /= layout.shape().arity() as u64;
            first.push(number);
        }
        let block = vec![0; layout.shape().block_size()];
        let (layout, different) = (layout.clone(), vec![Vec::new(); top]);
        Self { stored, layout, top, first, different, unnamed: 0, block }
    }

    /// Returns the level, the number of the first block and the number of blocks of each run of blocks that
    /// differ.
    pub(crate) fn different(&self) -> impl Iterator<Item = (usize, u64, u64)> {
        let levels = self.different.iter().enumerate();
        levels
            .flat_map(|(level, runs)| runs.iter().map(move |&(first, count)| (level, first, count)))
    }

    /// Returns how many more blocks differ, if there are very many runs.
    pub(crate) fn unnamed(&self) -> u64 {
        self.unnamed
    }

    fn differs(&mut self, level: usize, index: u64) {
        let runs = &mut self.different[level];
        if let Some((first, count)) = runs.last_mut()
            && *first + *count == index
        {
            *count += 1;
        } else if runs.len() < MAX_RUNS {
            runs.push((index, 1));
        } else {
            self.unnamed += 1;
        }
    }
}

impl TreeBlocks for Compare<'_> {
    type Error = blkimage::Error;

    fn take(
        &mut self,
        level: usize,
        index: u64,
        count: u64,
        block: &[u8],
    ) -> Result<(), blkimage::Error> {
        if level >= self.top {
            return Ok(());
        }
        for index in self.first[level] + index..self.first[level] + index + count {
            let offset = self.layout.offset(level, index);
            self.stored.read_exact_at(&mut self.block, offset)?;
            if self.block != block {
                self.differs(level, index);
            }
        }
        Ok(())
    }
}

/// Maximum number of runs of different blocks on each level of a tree, which limits the memory to 1 MiB for each.
/// Limit in runs.
const MAX_RUNS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use blkhash::{Algorithm, BlockSize};
    use blkimage::{Format, Memory, OpenOptions};

    use super::*;

    #[test]
    fn runs_are_joined_and_limited() {
        let stored = OpenOptions::new().format(Format::Raw);
        let stored = stored.open_storage(Box::new(Memory(Vec::new())), "stored").unwrap();
        let layout = Layout::new(Algorithm::Sha256, BlockSize::PAGE, 0, 1 << 30).unwrap();
        let mut compare = Compare::new(&stored, &layout, 1, 0);
        [0, 3, 4, 5, 7, 9, 10].into_iter().for_each(|index| compare.differs(0, index));
        let found: Vec<_> = compare.different().collect();
        assert_eq!(found, [(0, 0, 1), (0, 3, 3), (0, 7, 1), (0, 9, 2)]);
        assert_eq!(compare.unnamed(), 0);

        let last = 100 + 2 * MAX_RUNS as u64;
        (100..last).step_by(2).for_each(|index| compare.differs(0, index));
        assert_eq!((compare.different().count(), compare.unnamed()), (MAX_RUNS, 4));
        // A block after the last run belongs to it.
        let (_, first, count) = compare.different().last().unwrap();
        compare.differs(0, first + count);
        assert_eq!(compare.different().last(), Some((0, first, 2)));
        assert_eq!((compare.different().count(), compare.unnamed()), (MAX_RUNS, 4));
    }
}
