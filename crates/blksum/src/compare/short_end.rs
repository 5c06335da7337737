//! The block in which the smaller of two images ends.

use blkhash::{BlockSize, Comparison, is_zero};
use blkimage::Source;

use super::ComparedRun;

/// The block in which the smaller image ends, if the larger one has more than zeros behind that end in it.
///
/// [`compare`](super::compare()) covers only the bytes that both images have. Images are compared in whole blocks if
/// their runs pass through [`whole`](Self::whole).
#[derive(Clone, Copy, Debug)]
pub struct ShortEnd {
    block: u64,
    left_is_longer: bool,
}

impl ShortEnd {
    /// Returns the block, or `None` if its common bytes decide how it compares.
    ///
    /// # Errors
    ///
    /// Fails if the larger image cannot be read.
    pub fn of(
        left: &dyn Source,
        right: &dyn Source,
        block_size: BlockSize,
    ) -> blkimage::Result<Option<Self>> {
        let block_size = u64::from(block_size);
        let (left_is_longer, size) = (left.size() > right.size(), left.size().min(right.size()));
        let longer = if left_is_longer { left } else { right };
        let end = size.next_multiple_of(block_size).min(longer.size());
        let mut rest = vec![0; (end - size) as usize];
        longer.read_exact_at(&mut rest, size)?;
        Ok((!is_zero(&rest)).then_some(Self { block: size / block_size, left_is_longer }))
    }

    /// Returns a run as one or two, in which this block compares with what the larger image has behind the end.
    pub fn whole(end: Option<Self>, run: ComparedRun) -> impl Iterator<Item = ComparedRun> {
        let last = run.first_block + (run.count - 1);
        let (run, last) = match end.filter(|end| end.block == last) {
            None => (run, None),
            Some(end) => {
                let comparison = end.compare(run.comparison);
                let last = ComparedRun { first_block: last, count: 1, comparison };
                (ComparedRun { count: run.count - 1, ..run }, Some(last))
            }
        };
        std::iter::once(run).filter(|run| run.count > 0).chain(last)
    }

    /// Returns how the blocks compare, from how their common bytes do.
    fn compare(self, kind: Comparison) -> Comparison {
        match (kind, self.left_is_longer) {
            (Comparison::Zeros | Comparison::Zeroed, true) => Comparison::Zeroed,
            (Comparison::Zeros | Comparison::Written, false) => Comparison::Written,
            _ => Comparison::Changed,
        }
    }
}
