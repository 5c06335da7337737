//! Parts of a compressed file that are decoded without the others.

use std::io;
use std::ops::Range;

use super::input::damaged;

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

/// Joins parts in the order of the file to units that are worth the effort.
#[derive(Default)]
pub(super) struct Units {
    units: Vec<Unit>,
    stored: u64,
    content: u64,
}

impl Units {
    /// Adds the next part of the file. Fails if the content is larger than any file.
    pub fn push(&mut self, stored: u64, content: u64) -> io::Result<()> {
        let end = self.content.checked_add(content).filter(|end| *end <= MAX_SIZE);
        let Some(end) = end else { return Err(damaged("states a size that no file has")) };
        let (stored, content) = (self.stored..self.stored + stored, self.content..end);
        (self.stored, self.content) = (stored.end, content.end);
        match self.units.last_mut() {
            Some(last) if last.content.end - last.content.start < MIN_CONTENT => {
                last.stored.end = stored.end;
                last.content.end = content.end;
            }
            _ => self.units.push(Unit { stored, content, blocks: None }),
        }
        Ok(())
    }

    pub fn finish(self) -> Vec<Unit> {
        self.units
    }
}

/// A unit of less content is joined with the next one.
pub(super) const MIN_CONTENT: u64 = 1 << 20;

/// Size of the largest file.
pub(super) const MAX_SIZE: u64 = i64::MAX as u64;
