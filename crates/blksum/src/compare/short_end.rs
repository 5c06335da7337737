//! The block in which the smaller of two images ends.

use blkhash::{BlockSize, Comparison};
use blkimage::{Slice, Source};

use super::nonzero::first_nonzero;
use crate::{Error, Progress, Tuning};

/// The block in which the smaller image ends, if the larger one has more than zeros after that end in it. A pass covers
/// only the bytes that both images have.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortEnd {
    block: u64,
    left_is_longer: bool,
}

impl ShortEnd {
    /// Returns the block, or `None` if its common bytes decide how it compares.
    pub(super) fn find(
        left: &dyn Source,
        right: &dyn Source,
        block_size: BlockSize,
        tuning: &Tuning,
    ) -> Result<Option<Self>, Error> {
        if left.size() == right.size() {
            return Ok(None);
        }
        let block_size = u64::from(block_size);
        let (left_is_longer, size) = (left.size() > right.size(), left.size().min(right.size()));
        let longer = if left_is_longer { left } else { right };
        let rest = size.div_ceil(block_size).saturating_mul(block_size) - size;
        let Some(rest) = Slice::new(longer, size, rest) else { return Ok(None) };
        let found = first_nonzero(&rest, 0, tuning, &Progress::new())?;
        Ok(found.map(|_| Self { block: size / block_size, left_is_longer }))
    }

    /// Returns the index of the block.
    pub(super) fn block(self) -> u64 {
        self.block
    }

    /// Returns how the blocks compare, from how their common bytes do.
    pub(super) fn compare(self, kind: Comparison) -> Comparison {
        match (kind, self.left_is_longer) {
            (Comparison::Zeros | Comparison::Zeroed, true) => Comparison::Zeroed,
            (Comparison::Zeros | Comparison::Written, false) => Comparison::Written,
            _ => Comparison::Changed,
        }
    }
}
