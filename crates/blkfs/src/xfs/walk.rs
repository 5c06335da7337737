//! One walk: reads bytes, keeps what was visited, and reports to the visitor within limits.

use std::collections::HashMap;

use super::log::Log;
use super::opened::Xfs;
use super::structure::Structure;
use super::superblock::{Block, Superblock};
use crate::error::{Error, Result};
use crate::visitor::{Extent, Mismatch, ObjectId, Owner, Problem, ProblemKind, Visitor, Wanted};

/// A walk over a file system.
pub struct Walk<'a> {
    pub fs: &'a Xfs,
    pub wanted: Wanted,
    pub visitor: &'a mut dyn Visitor,
    /// Number and bytes of structures that matched since the last report.
    tallies: [(u64, u64); Structure::COUNT],
    seen: Seen,
    /// Bytes read since the last call of `advance`.
    read: u64,
    reports: usize,
    suppressed: u64,
    spare: Vec<Vec<u8>>,
}

/// The place of a structure, for reports.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub structure: &'static str,
    pub offset: u64,
    pub object: Option<ObjectId>,
}

impl<'a> Walk<'a> {
    pub fn new(fs: &'a Xfs, wanted: Wanted, visitor: &'a mut dyn Visitor) -> Self {
        Self {
            fs,
            wanted,
            visitor,
            tallies: [(0, 0); Structure::COUNT],
            seen: Seen::default(),
            read: 0,
            reports: 0,
            suppressed: 0,
            spare: Vec::new(),
        }
    }

    pub fn superblock(&self) -> &'a Superblock {
        &self.fs.superblock
    }

    pub fn log(&self) -> &'a Log {
        &self.fs.log
    }

    /// Fills `bytes`. Returns `false` after it reported that they cannot be read.
    pub fn read(&mut self, place: Place, bytes: &mut [u8]) -> Result<bool> {
        self.count_read(bytes.len() as u64)?;
        match self.fs.volume.read_into(bytes, place.offset) {
            Ok(()) => Ok(true),
            // The bytes would be past the end of the image.
            Err(Error::Damaged { reason, .. }) => {
                self.problem(ProblemKind::Damaged, place, reason);
                Ok(false)
            }
            Err(error) => {
                self.problem(ProblemKind::Unreadable, place, error.to_string());
                Ok(false)
            }
        }
    }

    /// Adds to the number of bytes that were read, and reports them now and then.
    pub fn count_read(&mut self, bytes: u64) -> Result<()> {
        self.read += bytes;
        if self.read >= ADVANCE { self.advance() } else { Ok(()) }
    }

    /// Reports the number of bytes that were read. Fails if the visitor stops the walk.
    pub fn advance(&mut self) -> Result<()> {
        let bytes = std::mem::take(&mut self.read);
        if self.visitor.advance(bytes).is_break() {
            return Err(Error::Cancelled);
        }
        Ok(())
    }

    pub fn extent(&mut self, offset: u64, length: u64, owner: Owner) {
        if self.wanted.extents && length > 0 {
            self.visitor.extent(Extent { offset, length, owner });
        }
    }

    /// Reports blocks of metadata.
    pub fn metadata(
        &mut self,
        first: Block,
        count: u64,
        structure: &'static str,
        object: Option<ObjectId>,
    ) {
        let (offset, length) = (self.superblock().offset(first), self.superblock().bytes(count));
        self.extent(offset, length, Owner::Metadata { structure, object });
    }

    pub fn matched(&mut self, structure: Structure, bytes: u64) {
        let tally = &mut self.tallies[structure as usize];
        *tally = (tally.0 + 1, tally.1 + bytes);
    }

    /// Reports the structures that matched.
    pub fn flush(&mut self) -> Result<()> {
        for (structure, tally) in Structure::ALL.iter().zip(&mut self.tallies) {
            let (count, bytes) = std::mem::take(tally);
            if count > 0 {
                self.visitor.matched(structure.name(), count, bytes);
            }
        }
        self.advance()
    }

    pub fn mismatch(&mut self, place: Place, length: u64, reason: String) {
        if self.may_report() {
            let Place { structure, offset, object } = place;
            self.visitor.mismatch(Mismatch { structure, offset, length, object, reason });
        }
    }

    pub fn problem(&mut self, kind: ProblemKind, place: Place, reason: String) {
        if self.may_report() {
            let Place { structure, offset, object } = place;
            self.visitor.problem(Problem { kind, structure, offset, object, reason });
        }
    }

    /// Reports that bytes violate the rules, unless the log may hold newer ones.
    pub fn damaged(&mut self, place: Place, reason: impl std::fmt::Display) {
        if self.log().may_be_newer() {
            let reason = format!("{reason}, which the log may put right");
            self.problem(ProblemKind::Skipped, place, reason);
        } else {
            self.problem(ProblemKind::Damaged, place, reason.to_string());
        }
    }

    /// Returns the number of reports so far.
    pub fn reports(&self) -> u64 {
        self.reports as u64 + self.suppressed
    }

    fn may_report(&mut self) -> bool {
        let may = self.reports < MAX_REPORTS;
        self.reports += usize::from(may);
        self.suppressed += u64::from(!may);
        may
    }

    /// Reports how many reports were suppressed.
    pub fn finish(&mut self) -> Result<()> {
        if self.suppressed > 0 {
            let reason = format!("{} more reports are left out", self.suppressed);
            self.reports = 0;
            let place = Place { structure: "file system", offset: 0, object: None };
            self.problem(ProblemKind::Skipped, place, reason);
        }
        self.flush()
    }

    /// Marks blocks of metadata as visited. Returns `false` at the first that was visited before.
    pub fn visit(&mut self, first: Block, count: u64) -> bool {
        self.seen.add(first, count)
    }

    /// Returns a buffer of `length` bytes of any content. Those that are given back are reused.
    pub fn buffer(&mut self, length: usize) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(length, 0);
        buffer
    }

    pub fn give_back(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }
}

/// The blocks that were visited. Memory grows with their number, not with the size of the file system.
#[derive(Default)]
struct Seen {
    parts: HashMap<u64, Box<[u64; SEEN_WORDS]>>,
}

impl Seen {
    /// Adds blocks until one was there. Returns whether none was. The work is that for the new blocks.
    fn add(&mut self, first: Block, count: u64) -> bool {
        for block in first..first.saturating_add(count) {
            let (part, bit) = (block / SEEN_BLOCKS, block % SEEN_BLOCKS);
            let words = self.parts.entry(part).or_insert_with(|| Box::new([0; SEEN_WORDS]));
            let (word, mask) = (&mut words[(bit / 64) as usize], 1 << (bit % 64));
            if *word & mask != 0 {
                return false;
            }
            *word |= mask;
        }
        true
    }
}

const SEEN_WORDS: usize = 16;
const SEEN_BLOCKS: u64 = SEEN_WORDS as u64 * 64;

/// Bytes after which the number of bytes read is reported to the visitor.
const ADVANCE: u64 = 1 << 20;

/// Maximum number of mismatches and problems that one walk reports one by one.
/// Limit in reports.
const MAX_REPORTS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_new_once() {
        let mut seen = Seen::default();
        assert!(seen.add(1020, 8));
        assert!(!seen.add(1027, 1));
        assert!(seen.add(1028, 1));
        assert!(seen.add(u64::MAX - 2, 2));
        assert!(!seen.add(0, 1022));
        assert!(!seen.add(1019, 1));
        assert!(seen.add(1018, 0));
        assert_eq!(seen.parts.len(), 3);
    }
}
