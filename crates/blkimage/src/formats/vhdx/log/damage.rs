//! Whether a log ends where a write was interrupted, or where it is damaged.
//!
//! An entry is written after the one before it is on disk, so only the newest can be torn: a valid entry
//! beyond the last one that can be replayed shows that one between them is damaged. A torn entry has a
//! sector that was not written. Each sector of an entry holds its sequence number, so an entry whose
//! sectors are all there and whose checksum does not match is damaged as well, and so is one that a single
//! flipped bit makes valid, wherever that bit is.
//!
//! If no entry is valid, the first one was torn or not begun, or the only one is damaged. Its place and
//! its sequence number are not known, so that each sector that begins an entry of this log, also with one
//! bit flipped, is examined. After it may be sectors of an earlier log with its sequence number, because QEMU begins at
//! the same place with the same number whenever it opens an image. Therefore sectors that seem to be written are no
//! evidence, but a flipped bit is, and so is a tail that points to another entry.

use super::Log;
use crate::error::Result;
use crate::formats::fields::array;
use crate::formats::vhdx::checksum::Checksum;
use crate::formats::vhdx::entry::{GUID, LENGTH, LogEntry, SECTOR, SEQUENCE, SIGNATURE, Sector};

impl Log<'_> {
    /// Fails if the log, of which no entry is valid, has one that is damaged.
    pub(super) fn check_empty(&self) -> Result<()> {
        self.left.set(self.sectors * MAX_CHECKS);
        let mut first = [0; SECTOR as usize];
        for start in 0..self.sectors {
            self.read_sector(start, &mut first)?;
            if let Some(at) = self.damage(start, first, None)? {
                let reason = "log was not replayed, and its only entry is damaged";
                return Err(self.file.corrupt(reason).at(at));
            }
            let torn = self.parse(start, &first);
            if torn.is_some_and(|entry| entry.tail != start * SECTOR) {
                return Err(self.no_sequence());
            }
        }
        Ok(())
    }

    /// Fails if the log held more than the entries up to `last`. `newest` is the largest sequence number
    /// of a valid entry.
    pub(super) fn check_end(&self, last: LogEntry, newest: u64) -> Result<()> {
        self.left.set(self.sectors * MAX_CHECKS);
        let Some(next) = last.sequence.checked_add(1) else { return Ok(()) };
        let start = (last.start + last.length) % self.sectors;
        let mut first = [0; SECTOR as usize];
        self.read_sector(start, &mut first)?;
        let (at, reason) = if newest > last.sequence {
            let reason = format!("entry {next} is damaged or lost, and entry {newest} is valid");
            (self.sector_offset(start), reason)
        } else if let Some(at) = self.damage(start, first, Some(next))? {
            (at, format!("entry {next}, the newest, is damaged"))
        } else {
            return Ok(());
        };
        Err(self.file.corrupt(format!("log was not replayed, and its {reason}")).at(at))
    }

    /// Returns where the entry that begins at a sector, and is not valid, is damaged in the file. `None` if
    /// it is torn, or no entry with this sequence number begins there. The number is that after a valid
    /// entry, or `None` if there is no such entry.
    fn damage(&self, start: u64, mut first: Sector, sequence: Option<u64>) -> Result<Option<u64>> {
        let number = sequence.map(u64::to_le_bytes);
        let fixed: [(usize, &[u8]); 3] = [
            (0, SIGNATURE),
            (SEQUENCE, number.as_ref().map_or(&[], |number| number)),
            (GUID, &self.guid.0),
        ];
        let mut wrong = None;
        for (at, expected) in fixed {
            for (at, byte) in (at..).zip(expected) {
                match (first[at] ^ byte).count_ones() {
                    0 => {}
                    1 if wrong.is_none() => wrong = Some(at),
                    _ => return Ok(None),
                }
                first[at] = *byte;
            }
        }
        let here = self.sector_offset(start);
        if let Some(at) = wrong {
            let is_damaged = self.syndrome(start, &first)? == Some(0);
            return Ok(is_damaged.then_some(here + at as u64));
        }
        // The header is written at once, so that a length that is not possible was not written.
        let Some(entry) = self.parse(start, &first) else { return Ok(Some(here + LENGTH as u64)) };
        let syndrome = self.syndrome(start, &first)?;
        if syndrome == Some(0) {
            return Ok(Some(here));
        }
        self.spend(entry.length * SEARCH)?;
        if let Some(syndrome) = syndrome
            && let Some(bit) = Checksum::flipped_bit(syndrome, entry.length * SECTOR)
        {
            let byte = bit / 8;
            return Ok(Some(self.sector_offset(start + byte / SECTOR) + byte % SECTOR));
        }
        if sequence.is_some()
            && let Some((parts, _)) = self.read_parts(entry, &first)?
            && parts.are_written()
        {
            return Ok(Some(here));
        }
        let length = u32::from_le_bytes(array(&first, LENGTH));
        for bit in 0..u32::BITS {
            first[LENGTH..LENGTH + 4].copy_from_slice(&(length ^ 1 << bit).to_le_bytes());
            if self.syndrome(start, &first)? == Some(0) {
                return Ok(Some(here + LENGTH as u64));
            }
        }
        Ok(None)
    }

    /// Returns the difference between the checksum of an entry and the one that it states. `None` if its
    /// length is not possible.
    fn syndrome(&self, start: u64, first: &Sector) -> Result<Option<u32>> {
        let Some(entry) = self.parse(start, first) else { return Ok(None) };
        let mut checksum = Checksum::default();
        checksum.start(first);
        let mut sector = [0; SECTOR as usize];
        self.spend(entry.length)?;
        for index in 1..entry.length {
            self.read_sector(start + index, &mut sector)?;
            checksum.update(&sector);
        }
        Ok(Some(checksum.syndrome(first)))
    }
}

/// Maximum number of times that the search for damage may read each sector of the log. One entry that fills the log
/// needs 20.
/// Limit in reads.
const MAX_CHECKS: u64 = 64;

/// Number of sectors that can be read in about the time in which a flipped bit is looked for in one.
const SEARCH: u64 = 16;
