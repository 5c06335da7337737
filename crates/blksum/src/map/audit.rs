//! Tells whether a list of changes is complete, from where two states of an image differ.

use std::ops::Range;

use blkhash::{BlockSize, Comparison};
use blkmap::{Map, Report};

use super::{Pairing, check_parts};
use crate::changes::Changes;
use crate::selected::Selected;
use crate::{Difference, Error, Progress, RelatedRun, Sides, Tuning};

/// The judgement of a list of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditSummary {
    /// Number of blocks that changed and that the list includes.
    pub listed: u64,
    /// Number of blocks that changed and that the list does not include.
    pub missed: u64,
    /// Number of blocks that the list includes although they are equal.
    pub needless: u64,
    /// Number of other blocks that are equal.
    pub clean: u64,
    /// Number of blocks that one side does not know, or that cannot be read.
    pub unknown: u64,
    /// Number of bytes in the list.
    pub listed_bytes: u64,
    /// Number of bytes in the list that are in blocks that are equal.
    pub needless_bytes: u64,
}

/// Judges a list of changes, by the results of a comparison in order.
#[derive(Clone, Debug)]
pub struct Audit<'a> {
    changes: &'a Changes,
    /// The blocks that the list includes, and the first one that may be left.
    blocks: Vec<Range<u64>>,
    next_block: usize,
    next_extent: usize,
    block_size: u64,
    summary: AuditSummary,
}

impl<'a> Audit<'a> {
    /// Begins with the first block of an image.
    pub fn new(changes: &'a Changes, block_size: BlockSize) -> Self {
        let summary = AuditSummary { listed_bytes: changes.bytes(), ..AuditSummary::default() };
        let blocks = changes.blocks(block_size);
        let block_size = block_size.into();
        Self { changes, blocks, next_block: 0, next_extent: 0, block_size, summary }
    }

    /// Judges `count` blocks that compare in one way. Passes runs to `pass` that are listed or not, and whether they are.
    pub fn push(
        &mut self,
        first: u64,
        count: u64,
        comparison: Comparison,
        pass: &mut dyn FnMut(u64, u64, bool),
    ) {
        let end = first + count;
        let mut at = first;
        while at < end {
            while self.blocks.get(self.next_block).is_some_and(|listed| listed.end <= at) {
                self.next_block += 1;
            }
            let (is_listed, until) = match self.blocks.get(self.next_block) {
                Some(listed) if listed.start <= at => (true, listed.end.min(end)),
                Some(listed) => (false, listed.start.min(end)),
                None => (false, end),
            };
            self.count(at, until - at, comparison, is_listed);
            pass(at, until - at, is_listed);
            at = until;
        }
    }

    /// Returns the judgement of all blocks so far.
    pub fn summary(&self) -> AuditSummary {
        self.summary
    }

    fn count(&mut self, first: u64, count: u64, comparison: Comparison, is_listed: bool) {
        let summary = &mut self.summary;
        match (comparison, is_listed) {
            (Comparison::Unknown | Comparison::Unreadable, _) => summary.unknown += count,
            (comparison, true) if comparison.is_different() => summary.listed += count,
            (comparison, false) if comparison.is_different() => summary.missed += count,
            (_, false) => summary.clean += count,
            (_, true) => {
                summary.needless += count;
                let at = |block: u64| block.saturating_mul(self.block_size);
                self.count_bytes(at(first)..at(first + count));
            }
        }
    }

    /// Counts the bytes of the list in a range of bytes that are equal.
    fn count_bytes(&mut self, equal: Range<u64>) {
        let extents = self.changes.extents();
        while extents.get(self.next_extent).is_some_and(|it| it.end <= equal.start) {
            self.next_extent += 1;
        }
        let in_range = extents[self.next_extent..].iter().take_while(|it| it.start < equal.end);
        let bytes = in_range.map(|it| it.end.min(equal.end) - it.start.max(equal.start));
        self.summary.needless_bytes += bytes.sum::<u64>();
    }
}

/// Judges a list of changes since a map was made of an image. Passes what changed and is not listed to `missed`, in order
/// and in the longest possible extents.
///
/// What only one of two images has that differ in size is not judged.
///
/// # Errors
///
/// Fails like [`verify`](super::verify).
pub fn audit(
    map: &Map,
    image: &Selected,
    changes: &Changes,
    missed: &mut (dyn FnMut(Difference) + Send),
    tuning: &Tuning,
    progress: &Progress,
) -> Result<AuditSummary, Error> {
    let pairing = Pairing::new(map, image)?;
    judge(pairing.sides(), changes, missed, |report| {
        pairing.compare(report, tuning, progress)?;
        Ok(())
    })
}

/// Judges a list of changes between two maps, like [`audit`].
///
/// # Errors
///
/// Fails like [`diff`](super::diff).
pub fn audit_maps(
    left: &Map,
    right: &Map,
    changes: &Changes,
    missed: &mut (dyn FnMut(Difference) + Send),
) -> Result<AuditSummary, Error> {
    check_parts(left, right)?;
    let size = |map: &Map| map.commit().image_size();
    let sides = Sides::new(left.header().block_size, size(left), size(right));
    judge(sides, changes, missed, |report| Ok(blkmap::diff(left, right, report)?))
}

fn judge(
    sides: Sides,
    changes: &Changes,
    missed: &mut (dyn FnMut(Difference) + Send),
    compare: impl FnOnce(Report<'_>) -> Result<(), Error>,
) -> Result<AuditSummary, Error> {
    let mut audit = Audit::new(changes, sides.block_size);
    let mut take = |first, count, comparison: Comparison| {
        audit.push(first, count, comparison, &mut |first, count, is_listed| {
            if comparison.is_different() && comparison != Comparison::Unreadable && !is_listed {
                let relation = comparison.into();
                let run = RelatedRun { first, count, relation };
                let (offset, length) = sides.extent(run, sides.larger());
                missed(Difference { offset, length, blocks: count, relation });
            }
        });
    };
    compare(Report::new(&mut take))?;
    Ok(audit.summary())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_judged_by_the_list() {
        let changes: Changes = [512..1024, 1100..1200, 4096..5120].into_iter().collect();
        let mut audit = Audit::new(&changes, BlockSize::try_from(512).unwrap());
        let mut passed = Vec::new();
        let mut push = |first, count, comparison| {
            audit.push(first, count, comparison, &mut |first, count, is_listed| {
                passed.push((first, count, is_listed));
            });
        };
        push(0, 2, Comparison::Changed);
        push(2, 1, Comparison::Equal);
        push(3, 2, Comparison::Zeros);
        push(5, 4, Comparison::Written);
        push(9, 3, Comparison::Equal);
        push(12, 1, Comparison::Unknown);
        let expected = [
            (0, 1, false),
            (1, 1, true),
            (2, 1, true),
            (3, 2, false),
            (5, 3, false),
            (8, 1, true),
            (9, 1, true),
            (10, 2, false),
            (12, 1, false),
        ];
        assert_eq!(passed, expected);
        let expected = AuditSummary {
            listed: 2,
            missed: 4,
            needless: 2,
            clean: 4,
            unknown: 1,
            listed_bytes: 512 + 100 + 1024,
            needless_bytes: 100 + 512,
        };
        assert_eq!(audit.summary(), expected);
    }
}
