//! Blocks whose place in the image contradicts a map, although nothing calls them changed.
//!
//! A tracker that lost changes, such as a bitmap that was cleared, does not show it. The image may: it stores a block that
//! was all zeros when the map was made, or no longer stores one that was not.

use std::ops::Range;

use blkimage::{ExtentKind, Source};
use blkmap::{BlockRun, Map};

use crate::Error;

/// Returns blocks of the first `blocks` ones that are worth a comparison with the map, in order. Most of them are equal:
/// zeros can be stored, and blocks can become zeros before they are called changed.
///
/// In a map of more than [`MAX_BLOCKS`] blocks, only whole pages of zeros are looked at.
///
/// # Errors
///
/// Fails if the map cannot be read or is damaged, or if the place of bytes in the image is unknown.
pub(super) fn suspects(
    base: &Map,
    source: &dyn Source,
    blocks: u64,
) -> Result<Vec<Range<u64>>, Error> {
    let block_size = u64::from(base.header().block_size);
    let mut found = Found { source, block_size, end: blocks, ranges: Vec::new() };
    if base.commit().blocks() > MAX_BLOCKS {
        let per_page = base.header().blocks_per_page();
        for run in base.page_runs() {
            let run = run?;
            if run.is_zero() {
                found.add(run.first * per_page..run.end().saturating_mul(per_page), true)?;
            }
        }
        return Ok(found.ranges);
    }
    let zero = base.zero_block().as_bytes();
    let is_zero = |entry: &[u8]| entry.starts_with(zero);
    let mut runs = base.blocks()?;
    while let Some(run) = runs.next(u64::MAX)? {
        match run {
            BlockRun::Zeros { first, count } => found.add(first..first + count, true)?,
            BlockRun::Digests { first, entries } => {
                let mut block = first;
                let entries: Vec<_> = entries.chunks_exact(base.header().entry_size()).collect();
                for alike in entries.chunk_by(|one, next| is_zero(one) == is_zero(next)) {
                    let next = block + alike.len() as u64;
                    found.add(block..next, is_zero(alike[0]))?;
                    block = next;
                }
            }
            BlockRun::Unknown { .. } => {}
        }
    }
    Ok(found.ranges)
}

struct Found<'a> {
    source: &'a dyn Source,
    block_size: u64,
    /// Number of the block after the last one.
    end: u64,
    ranges: Vec<Range<u64>>,
}

impl Found<'_> {
    /// Adds the blocks of a range that were zeros and are stored now, or were not zeros and are no longer stored.
    fn add(&mut self, blocks: Range<u64>, were_zeros: bool) -> Result<(), Error> {
        let size = self.source.size();
        let at = |block: u64| block.saturating_mul(self.block_size).min(size);
        let (mut offset, end) = (at(blocks.start), at(blocks.end.min(self.end)));
        while offset < end && self.ranges.len() < MAX_RANGES {
            let limit = end - offset;
            let extent = self.source.extent(offset, limit)?;
            if extent.offset != offset || extent.length == 0 || extent.length > limit {
                return Err(Error::Extent { offset: extent.offset, length: extent.length, limit });
            }
            let (first, last) = (offset, offset + extent.length);
            offset = last;
            match (were_zeros, extent.kind == ExtentKind::Zero) {
                (true, false) => {
                    self.push(first / self.block_size..last.div_ceil(self.block_size));
                }
                (false, true) => {
                    self.push(first.div_ceil(self.block_size)..last / self.block_size);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn push(&mut self, blocks: Range<u64>) {
        match self.ranges.last_mut() {
            _ if blocks.is_empty() => {}
            Some(last) if last.end >= blocks.start => last.end = last.end.max(blocks.end),
            _ => self.ranges.push(blocks),
        }
    }
}

/// Maximum number of blocks in a map that is read as a whole to find contradictions to a list of changes, 64 MiB of
/// digests.
/// Limit in blocks.
const MAX_BLOCKS: u64 = 2 << 20;

/// Maximum number of ranges of blocks that contradict a list of changes, which take 16 MiB.
/// Limit in ranges.
const MAX_RANGES: usize = 1 << 20;
