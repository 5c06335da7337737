//! Lists where two images differ.

use blkhash::{BlockSize, Comparison};
use blkimage::Source;
use blkmap::Report;

use crate::sides::{RelatedRun, Relation, Sides};
use crate::{Error, Progress, Tuning, Unreadable, compare};

/// Blocks of two images that differ, or that one side does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// The relation of the blocks.
    pub relation: Relation,
}

/// Passes everything in which two images differ to `found`, in order and in the longest possible extents, with blocks that
/// only one of them has. Returns why blocks could not be read, like [`compare`](crate::compare()).
///
/// # Errors
///
/// Fails like [`compare`](crate::compare()).
pub fn differences(
    left: &dyn Source,
    right: &dyn Source,
    block_size: BlockSize,
    found: &mut (dyn FnMut(Difference) + Send),
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Vec<Unreadable>, Error> {
    collect(Sides::new(block_size, left.size(), right.size()), found, |mut report| {
        let unreadable = compare(left, right, block_size, &mut report, tuning, progress)?;
        report.end();
        Ok(unreadable)
    })
}

/// Passes on what `compare` reports, and the blocks that only one side has.
pub(crate) fn collect<T>(
    sides: Sides,
    found: &mut (dyn FnMut(Difference) + Send),
    compare: impl FnOnce(Report<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut pass = |run: RelatedRun| {
        let (offset, length) = sides.extent(run, sides.larger());
        if length > 0 && !matches!(run.relation, Relation::Equal | Relation::Zeros) {
            found(Difference { offset, length, blocks: run.count, relation: run.relation });
        }
    };
    let mut take = |first, count, comparison: Comparison| {
        pass(RelatedRun { first, count, relation: comparison.into() });
    };
    let compared = compare(Report::new(&mut take))?;
    sides.tail().into_iter().for_each(pass);
    Ok(compared)
}
