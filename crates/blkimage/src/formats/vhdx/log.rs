//! The log of an image that was not closed: its entries, and the sequence that has to be replayed.
//!
//! The log is a ring of 4 KiB sectors. An entry is a header with descriptors, followed by the data sectors
//! that the descriptors refer to. It is valid if its signatures, sequence numbers and checksum match. The
//! active sequence ends with the entry that has the largest sequence number, and begins where the tail of
//! that entry points to.
//!
//! A write that was interrupted leaves the newest entry torn: the sequence ends before it. If it is the
//! first entry, or was not begun after a header announced the log, nothing has to be replayed. QEMU leaves
//! and reads such logs, although MS-VHDX calls them corrupt. Everything else that ends a sequence is damage
//! ([`damage`]), and an error, because replaying less than the log held would give the content that the
//! disk had before.

mod damage;

use std::cell::Cell;

use super::checksum::Checksum;
use super::entry::{
    DATA_DESCRIPTOR, DESCRIPTOR, HEADER, IN_FIRST, LogEntry, Parts, SECTOR, Sector,
};
use super::guid::Guid;
use super::header::Header;
use super::units::MIB;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::fields::{array, check_inside};
use crate::storage::HostFile;

/// The log region of a file.
pub(super) struct Log<'a> {
    file: &'a HostFile,
    guid: Guid,
    offset: u64,
    /// Number of sectors in the ring.
    sectors: u64,
    /// Number of sectors that the search for entries, or for damage, may still read.
    left: Cell<u64>,
}

/// A change of the file.
pub(super) struct Descriptor {
    /// Offset of the change in the file, a multiple of [`SECTOR`].
    pub offset: u64,
    pub content: Content,
}

/// The new content of a range.
#[derive(Clone, Copy)]
pub(super) enum Content {
    Zeros { length: u64 },
    Sector(LoggedSector),
}

/// A sector whose content is in the log, except for its first and last bytes.
#[derive(Clone, Copy)]
pub(super) struct LoggedSector {
    /// Offset of the sector in the file, as stored in the log.
    pub log_offset: u64,
    pub leading: [u8; 8],
    pub trailing: [u8; 4],
}

impl<'a> Log<'a> {
    pub fn new(file: &'a HostFile, header: &Header) -> Result<Self> {
        let Header { log: guid, log_offset: offset, log_length: length, .. } = *header;
        let sectors = length / SECTOR;
        let log = Self { file, guid, offset, sectors, left: Cell::new(sectors * MAX_READS) };
        if length == 0 || !length.is_multiple_of(MIB) {
            return Err(log.corrupt("log was not replayed, and its length is not possible"));
        }
        if length > MAX_LOG {
            let reason = format!(
                "log was not replayed and has {length} bytes: more than {MAX_LOG} are not read"
            );
            return Err(file.error(ErrorKind::Unsupported, reason).at(offset));
        }
        check_inside(file, offset, length, "log")?;
        Ok(log)
    }

    /// Returns the entries to be replayed, in order. Empty if no entry is complete.
    pub fn active_sequence(&self) -> Result<Vec<LogEntry>> {
        let mut active: Vec<LogEntry> = Vec::new();
        let mut newest = 0;
        let mut start = 0;
        while start < self.sectors {
            let sequence = self.sequence_at(start)?;
            let Some(last) = sequence.last().copied() else {
                start += 1;
                continue;
            };
            start += sequence.iter().map(|entry| entry.length).sum::<u64>();
            newest = newest.max(last.sequence);
            let is_newer = active.last().is_none_or(|active| active.sequence < last.sequence);
            let tail = sequence.iter().position(|entry| entry.start * SECTOR == last.tail);
            if let Some(tail) = tail
                && is_newer
            {
                active = sequence[tail..].to_vec();
            }
        }
        match active.last() {
            Some(last) => self.check_end(*last, newest)?,
            None if newest == 0 => self.check_empty()?,
            None => return Err(self.no_sequence()),
        }
        Ok(active)
    }

    /// Returns consecutive valid entries, the first of which begins at sector `start`.
    fn sequence_at(&self, start: u64) -> Result<Vec<LogEntry>> {
        let mut sequence: Vec<LogEntry> = Vec::new();
        let mut length = 0;
        while length < self.sectors {
            let Some(entry) = self.entry_at((start + length) % self.sectors)? else { break };
            let follows = sequence
                .last()
                .is_none_or(|last| last.sequence.checked_add(1) == Some(entry.sequence));
            length += entry.length;
            if !follows || length > self.sectors {
                break;
            }
            sequence.push(entry);
        }
        Ok(sequence)
    }

    /// Returns the entry that begins at a sector, or `None` if none does or its checksum does not match.
    /// Fails if the checksum matches and the entry is not possible.
    fn entry_at(&self, start: u64) -> Result<Option<LogEntry>> {
        let mut first = [0; SECTOR as usize];
        self.read_sector(start, &mut first)?;
        let Some(entry) = self.parse(start, &first) else { return Ok(None) };
        let Some((parts, checksum)) = self.read_parts(entry, &first)? else { return Ok(None) };
        if !checksum.matches(&first) {
            return Ok(None);
        }
        let is_tail = entry.tail.is_multiple_of(SECTOR) && entry.tail / SECTOR < self.sectors;
        if !is_tail || !parts.are_valid() {
            let reason = format!(
                "log was not replayed, and its entry {} is not valid although its checksum matches",
                entry.sequence
            );
            return Err(self.file.corrupt(reason).at(self.sector_offset(start)));
        }
        Ok(Some(entry))
    }

    /// Reads the sectors of an entry. `None` if a newer one was written over them.
    fn read_parts(&self, entry: LogEntry, first: &Sector) -> Result<Option<(Parts, Checksum)>> {
        let mut checksum = Checksum::default();
        checksum.start(first);
        let mut parts = Parts::new(entry, first);
        let mut sector = [0; SECTOR as usize];
        for index in 1..entry.length {
            self.spend(1)?;
            self.read_sector(entry.start + index, &mut sector)?;
            let begins = self.parse(entry.start + index, &sector);
            if begins.is_some_and(|other| other.sequence > entry.sequence) {
                return Ok(None);
            }
            parts.add(&sector);
            checksum.update(&sector);
        }
        Ok(Some((parts, checksum)))
    }

    /// Counts sectors that are read. Fails if too many were.
    fn spend(&self, sectors: u64) -> Result<()> {
        let Some(left) = self.left.get().checked_sub(sectors) else {
            return Err(self.corrupt("log was not replayed, and its entries overlap"));
        };
        self.left.set(left);
        Ok(())
    }

    /// Parses the header of an entry of this log, which begins at a sector.
    fn parse(&self, start: u64, first: &Sector) -> Option<LogEntry> {
        LogEntry::parse(start, first, self.guid, self.sectors)
    }

    /// Calls `visit` with each change of an entry, in order.
    pub fn for_each_descriptor(
        &self,
        entry: LogEntry,
        mut visit: impl FnMut(Descriptor) -> Result<()>,
    ) -> Result<()> {
        let mut data =
            entry.start + 1 + entry.descriptors.saturating_sub(IN_FIRST).div_ceil(PER_SECTOR);
        let mut sector = [0; SECTOR as usize];
        let (mut index, mut at) = (entry.start, HEADER);
        self.read_sector(index, &mut sector)?;
        for _ in 0..entry.descriptors {
            if at == sector.len() {
                (index, at) = (index + 1, 0);
                self.read_sector(index, &mut sector)?;
            }
            let bytes = &sector[at..at + DESCRIPTOR];
            let offset = u64::from_le_bytes(array(bytes, 16));
            let content = if bytes.starts_with(DATA_DESCRIPTOR) {
                let log_offset = self.sector_offset(data);
                data += 1;
                let (leading, trailing) = (array(bytes, 8), array(bytes, 4));
                Content::Sector(LoggedSector { log_offset, leading, trailing })
            } else {
                Content::Zeros { length: u64::from_le_bytes(array(bytes, 8)) }
            };
            visit(Descriptor { offset, content })?;
            at += DESCRIPTOR;
        }
        Ok(())
    }

    fn no_sequence(&self) -> Error {
        self.corrupt("log was not replayed and has no valid sequence of entries")
    }

    pub fn corrupt(&self, reason: &str) -> Error {
        self.file.corrupt(reason).at(self.offset)
    }

    /// Returns the offset of a sector in the file.
    fn sector_offset(&self, sector: u64) -> u64 {
        self.offset + sector % self.sectors * SECTOR
    }

    fn read_sector(&self, sector: u64, buf: &mut Sector) -> Result<()> {
        self.file.read_exact_at(buf, self.sector_offset(sector))
    }
}

/// Maximum length of a log that is replayed. Hyper-V and QEMU create logs of 1 MiB.
/// Limit in bytes.
pub(super) const MAX_LOG: u64 = 64 << 20;

/// Maximum number of times that the search for entries may read each sector of the log. Entries that a program wrote
/// need two.
/// Limit in reads.
const MAX_READS: u64 = 4;

/// Number of descriptors in a sector of an entry that is not the first.
const PER_SECTOR: u64 = SECTOR / DESCRIPTOR as u64;
