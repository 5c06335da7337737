//! What each state of a map changed.

use std::ops::Range;

use blkmap::Map;

use super::{Info, diff};
use crate::{Difference, Error};

/// A state of a map, and what it changed.
#[derive(Debug)]
#[non_exhaustive]
pub struct State {
    /// The map in this state.
    pub map: Map,
    /// What differs from the state before. `None` for the first state.
    pub changed: Option<Changed>,
}

impl State {
    /// Returns the time at which the state was made, if the map says it.
    pub fn created(&self) -> Option<String> {
        Info::of(&self.map).map(|info| info.created)
    }
}

/// What differs between two states of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changed {
    /// Number of blocks that differ, with those that only one state has.
    pub blocks: u64,
    /// Number of bytes in these blocks.
    pub bytes: u64,
    /// Number of extents that hold them.
    pub extents: u64,
}

/// The states of a map, from the last one back to the first.
///
/// Each is compared with the one before it in a range of the image. Reads the hashes of all pages of both, and the pages that
/// differ.
#[derive(Debug)]
pub struct History {
    next: Option<Map>,
    range: Range<u64>,
}

impl History {
    /// Begins with the state of `map`. `range` is in bytes of the image, and may go beyond its end.
    pub fn new(map: Map, range: Range<u64>) -> Self {
        Self { next: Some(map), range }
    }

    fn compare(&mut self, map: Map) -> Result<State, Error> {
        let before = map.previous_state()?;
        let mut changed = None;
        if let Some(before) = &before {
            let block_size = map.header().block_size.into();
            changed = Some(changes(before, &map, block_size, &self.range)?);
        }
        self.next = before;
        Ok(State { map, changed })
    }
}

impl Iterator for History {
    type Item = Result<State, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let map = self.next.take()?;
        Some(self.compare(map))
    }
}

fn changes(
    before: &Map,
    after: &Map,
    block_size: u64,
    range: &Range<u64>,
) -> Result<Changed, Error> {
    let mut changed = Changed::default();
    let first = range.start - range.start % block_size;
    let last = range.end.checked_next_multiple_of(block_size).unwrap_or(u64::MAX);
    // End of the last extent. Extents of other kinds may follow each other.
    let mut end = None;
    let mut count = |found: Difference| {
        let (from, to) = (found.offset.max(first), (found.offset + found.length).min(last));
        if !found.relation.is_different() || from >= to {
            return;
        }
        changed.blocks += (to - from).div_ceil(block_size);
        changed.bytes += to - from;
        changed.extents += u64::from(end != Some(from));
        end = Some(to);
    };
    diff(before, after, &mut count)?;
    Ok(changed)
}
