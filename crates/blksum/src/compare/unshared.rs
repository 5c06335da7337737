//! What two sources do not have in common, found without reading them.

use std::ops::Range;

use blkimage::Source;

use super::plan::{Chunk, Plan, SegmentKind};
use crate::Error;
use crate::look_ahead::Planner;

/// Passes the ranges to `take`, in order, that two sources do not get from one place, and that are not zero on both sides,
/// as far as both reach. Ranges may be adjacent, and longer than that by less than a page.
///
/// Returns an error of `take`. Fails with [`Error::NothingShared`] if no volume has files of both.
pub(crate) fn unshared(
    left: &dyn Source,
    right: &dyn Source,
    take: &mut dyn FnMut(Range<u64>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut plan = Plan::new(left, right, BLOCK_SIZE, CHUNK_SIZE).complete();
    if !plan.has_volume() {
        return Err(Error::NothingShared);
    }
    let mut chunk = Chunk::default();
    while plan.next(&mut chunk)? {
        for segment in &chunk.segments {
            if let SegmentKind::Read(_) = segment.kind {
                take(segment.range())?;
            }
        }
    }
    Ok(())
}

const BLOCK_SIZE: u64 = 4 << 10;

const CHUNK_SIZE: u64 = 64 << 20;
