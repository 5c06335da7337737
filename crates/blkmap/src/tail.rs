//! The end of a map, for comparison with a smaller image.

use crate::{BlockRun, Map, Result};

/// Returns whether the blocks of the map are zeros from the first one that begins at `offset` or after it.
/// Blocks that the map does not know are none.
///
/// # Errors
///
/// Fails if the map cannot be read or is damaged.
pub fn has_zero_tail(map: &Map, offset: u64) -> Result<bool> {
    let from = offset.div_ceil(map.header().block_size.into());
    let page = from / map.header().blocks_per_page();
    let entry_size = map.header().entry_size();
    let mut blocks = map.blocks_of(page.min(map.pages())..map.pages())?;
    while let Some(run) = blocks.next(u64::MAX)? {
        let is_zero = match run {
            BlockRun::Zeros { .. } => true,
            BlockRun::Unknown { first, count } => first + count <= from,
            BlockRun::Digests { first, entries } => (first..)
                .zip(entries.chunks_exact(entry_size))
                .all(|(block, entry)| block < from || map.is_zero_block(block, entry)),
        };
        if !is_zero {
            return Ok(false);
        }
    }
    Ok(true)
}
