//! Parts of a compressed file that are decoded without the others.

use std::io;
use std::ops::Range;

use super::input::{damaged, too_much_memory};
use super::limits::{Limits, too_large};

/// A part of a compressed file, and of the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// The compressed bytes, in the file.
    pub stored: Range<u64>,
    /// The bytes that they become, in the content.
    pub content: Range<u64>,
    /// The rest of an xz stream of these blocks.
    pub blocks: Option<Blocks>,
}

/// The blocks of an xz stream in a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    /// The flags in the header of the stream.
    pub flags: [u8; 2],
    /// The records of the index, in the file.
    pub records: Range<u64>,
    pub count: u64,
}

impl Unit {
    pub fn length(&self) -> u64 {
        self.content.end - self.content.start
    }

    /// Appends the next unit if both can be decoded as one. Returns whether they can.
    fn join(&mut self, next: &Self) -> bool {
        match (&mut self.blocks, &next.blocks) {
            (None, None) => {}
            // Blocks of one stream have adjacent records.
            (Some(own), Some(others)) if own.records.end == others.records.start => {
                own.records.end = others.records.end;
                own.count += others.count;
            }
            _ => return false,
        }
        self.stored.end = next.stored.end;
        self.content.end = next.content.end;
        true
    }
}

/// Joins parts in the order of the file to units that are worth the effort, and to larger ones if there are too many.
pub(super) struct Units {
    units: Vec<Unit>,
    stored: u64,
    content: u64,
    max_content: u64,
    /// Maximum number of units.
    max_units: usize,
    /// A unit of less content is joined with the next one.
    min_length: u64,
}

impl Units {
    pub fn new(limits: &Limits) -> Self {
        let max_units = limits.max_memory / UNIT_COST / 2;
        Self {
            units: Vec::new(),
            stored: 0,
            content: 0,
            max_content: limits.max_content,
            max_units: usize::try_from(max_units).unwrap_or(usize::MAX).max(MIN_UNITS),
            min_length: MIN_CONTENT,
        }
    }

    /// Adds the next part of the file. Fails if there is more content than the limit, or if the parts take too much memory.
    pub fn push(&mut self, stored: u64, content: u64) -> io::Result<()> {
        self.add(stored, content, None)
    }

    /// Adds a block of an xz stream, which begins at `start` in the file.
    pub fn push_block(
        &mut self,
        start: u64,
        stored: u64,
        content: u64,
        block: Blocks,
    ) -> io::Result<()> {
        self.stored = start;
        self.add(stored, content, Some(block))
    }

    fn add(&mut self, stored: u64, content: u64, blocks: Option<Blocks>) -> io::Result<()> {
        let end = self.content.checked_add(content).filter(|end| *end <= MAX_SIZE);
        let Some(end) = end else { return Err(damaged("states a size that no file has")) };
        if end > self.max_content {
            return Err(too_large());
        }
        let (stored, content) = (self.stored..self.stored + stored, self.content..end);
        (self.stored, self.content) = (stored.end, content.end);
        let unit = Unit { stored, content, blocks };
        if let Some(last) = self.units.last_mut()
            && is_short(last, &unit, self.min_length)
            && last.join(&unit)
        {
            return Ok(());
        }
        self.units.push(unit);
        if self.units.len() >= self.max_units { self.widen() } else { Ok(()) }
    }

    /// Joins units until half as many are left.
    fn widen(&mut self) -> io::Result<()> {
        while self.units.len() > self.max_units / 2 {
            if self.min_length >= MAX_LENGTH {
                return Err(too_much_memory("has more parts"));
            }
            self.min_length *= 2;
            let min_length = self.min_length;
            self.units.dedup_by(|next, last| is_short(last, next, min_length) && last.join(next));
        }
        Ok(())
    }

    pub fn finish(self) -> Vec<Unit> {
        self.units
    }
}

/// Returns whether a unit is joined with the next one. Larger ones are read from start to end only.
fn is_short(unit: &Unit, next: &Unit, min_length: u64) -> bool {
    let is_both = unit.length() < min_length && unit.length() + next.length() <= MAX_LENGTH;
    is_both || unit.length() < MIN_CONTENT
}

/// Maximum memory for a unit until everything was decoded, in tables that grow by doubling. Units may take half of
/// the memory that is allowed.
/// Limit in bytes.
pub(super) const UNIT_COST: u64 = 256;

/// A unit of less content is always joined with the next one.
const MIN_CONTENT: u64 = 1 << 20;

/// Maximum content of units that are joined if there are too many. One with this content is decoded again if it is
/// read again.
/// Limit in bytes.
pub(super) const MAX_LENGTH: u64 = 64 << 20;

/// This number of units is always allowed.
const MIN_UNITS: usize = 1024;

/// Size of the largest file.
pub(super) const MAX_SIZE: u64 = i64::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(max_content: u64, max_memory: u64) -> Limits {
        Limits { max_content, max_memory }
    }

    /// Checks that units have the content up to `end`, one after the other.
    fn check(units: &[Unit], end: u64) {
        let mut last = 0;
        for unit in units {
            assert_eq!(unit.content.start, last);
            last = unit.content.end;
        }
        assert_eq!(last, end);
    }

    #[test]
    fn many_parts_become_larger_units() {
        let mut units = Units::new(&limits(1 << 50, 1 << 20));
        let most = (1 << 20) / UNIT_COST as usize / 2;
        for part in 0..40_000 {
            units.push(50, MIN_CONTENT + part % 3).unwrap();
            assert!(units.units.len() <= most && units.units.capacity() <= 2 * most);
        }
        let content = 40_000 * MIN_CONTENT + 39_999;
        let units = units.finish();
        check(&units, content);
        assert!(units.iter().all(|unit| unit.length() <= MAX_LENGTH));
        assert_eq!(units.last().unwrap().stored.end, 50 * 40_000);
    }

    #[test]
    fn parts_take_no_more_memory_than_allowed() {
        let mut units = Units::new(&limits(1 << 50, 1 << 20));
        let failed = (0..1_000_000).find_map(|_| units.push(50, MAX_LENGTH).err()).unwrap();
        assert_eq!(failed.kind(), io::ErrorKind::OutOfMemory);
        let mut units = Units::new(&limits(1 << 30, 1 << 40));
        let failed = (0..1_000_000).find_map(|_| units.push(50, MIN_CONTENT).err()).unwrap();
        assert_eq!((failed.kind(), units.units.len()), (io::ErrorKind::FileTooLarge, 1 << 10));
    }

    #[test]
    fn blocks_of_one_stream_are_joined() {
        let mut units = Units::new(&limits(1 << 50, 1));
        let (mut start, mut records) = (12, 1000);
        for block in 0..10_000 {
            // A stream of 5000 blocks.
            if block % 5000 == 0 {
                (start, records) = (start + 24, records + 100);
            }
            let block = Blocks { flags: [0, 4], records: records..records + 5, count: 1 };
            units.push_block(start, 8, MIN_CONTENT, block).unwrap();
            (start, records) = (start + 8, records + 5);
        }
        let units = units.finish();
        check(&units, 10_000 * MIN_CONTENT);
        assert!(units.len() <= MIN_UNITS);
        let count = |unit: &Unit| {
            let blocks = unit.blocks.as_ref().unwrap();
            assert_eq!(blocks.records.end - blocks.records.start, 5 * blocks.count);
            assert_eq!(unit.stored.end - unit.stored.start, 8 * blocks.count);
            blocks.count
        };
        assert_eq!(units.iter().map(count).sum::<u64>(), 10_000);
    }
}
