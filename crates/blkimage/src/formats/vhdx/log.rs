//! The log of an image that was not closed: its entries, and the sequence that has to be replayed.
//!
//! The log is a ring of 4 KiB sectors. An entry is a header with descriptors, followed by the data sectors
//! that the descriptors refer to. It is valid if its signatures, sequence numbers and checksum match. The
//! active sequence ends with the entry that has the largest sequence number, and begins where the tail of
//! that entry points to. A log without an active sequence is an error, because its entries are lost.

use super::checksum::Checksum;
use super::guid::Guid;
use super::header::Header;
use super::units::{KIB, MIB};
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
}

/// A valid entry.
#[derive(Clone, Copy)]
pub(super) struct LogEntry {
    /// Index of the first sector.
    start: u64,
    /// Length in sectors.
    length: u64,
    sequence: u64,
    /// Index of the first sector of the first entry that is not yet in place.
    tail: u64,
    descriptors: u64,
    /// Size of the file, of which everything had reached the disk.
    pub flushed_size: u64,
    /// Size that the file has at least.
    pub last_size: u64,
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
        let log = Self { file, guid, offset, sectors: length / SECTOR };
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

    /// Returns the entries to be replayed, in order.
    pub fn active_sequence(&self) -> Result<Vec<LogEntry>> {
        let mut active: Vec<LogEntry> = Vec::new();
        let mut start = 0;
        while start < self.sectors {
            let sequence = self.sequence_at(start)?;
            let Some(last) = sequence.last().copied() else {
                start += 1;
                continue;
            };
            start += sequence.iter().map(|entry| entry.length).sum::<u64>();
            let is_newer = active.last().is_none_or(|active| active.sequence < last.sequence);
            let tail = sequence.iter().position(|entry| entry.start == last.tail);
            if let Some(tail) = tail
                && is_newer
            {
                active = sequence[tail..].to_vec();
            }
        }
        if active.is_empty() {
            let reason = "log was not replayed and has no valid sequence of entries";
            return Err(self.corrupt(reason));
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

    /// Returns the entry that begins at a sector, or `None` if it is not valid. Stops at the first sector
    /// that begins another entry, so that a sector is read at most twice as part of an entry.
    fn entry_at(&self, start: u64) -> Result<Option<LogEntry>> {
        let mut first = [0; SECTOR as usize];
        self.read_sector(start, &mut first)?;
        let Some(entry) = self.parse(start, &first) else { return Ok(None) };
        let mut checksum = Checksum::default();
        checksum.start(&first);
        let Some(mut data_left) = data_descriptors(&first[HEADER..], entry, entry.descriptors)
        else {
            return Ok(None);
        };
        let mut left = entry.descriptors.saturating_sub(IN_FIRST);
        let mut sector = [0; SECTOR as usize];
        for index in 1..entry.length {
            self.read_sector(start + index, &mut sector)?;
            if sector.starts_with(ENTRY_SIGNATURE) {
                return Ok(None);
            }
            if left > 0 {
                let Some(data) = data_descriptors(&sector, entry, left) else { return Ok(None) };
                data_left += data;
                left = left.saturating_sub(PER_SECTOR);
            } else if data_left > 0 {
                if !is_data(&sector, entry.sequence) {
                    return Ok(None);
                }
                data_left -= 1;
            }
            checksum.update(&sector);
        }
        let is_valid = left == 0 && data_left == 0 && checksum.matches(&first);
        Ok(is_valid.then_some(entry))
    }

    /// Parses the header of an entry. `None` if it is not one of this log.
    fn parse(&self, start: u64, first: &[u8]) -> Option<LogEntry> {
        let number = |at| u64::from_le_bytes(array(first, at));
        let [length, tail, descriptors] =
            [8, 12, 24].map(|at| u64::from(u32::from_le_bytes(array(first, at))));
        let entry = LogEntry {
            start,
            length: length / SECTOR,
            sequence: number(16),
            tail: tail / SECTOR,
            descriptors,
            flushed_size: number(48),
            last_size: number(56),
        };
        let is_valid = first.starts_with(ENTRY_SIGNATURE)
            && Guid(array(first, 32)) == self.guid
            && length.is_multiple_of(SECTOR)
            && (1..=self.sectors).contains(&entry.length)
            && tail.is_multiple_of(SECTOR)
            && entry.sequence > 0
            && descriptors.saturating_sub(IN_FIRST).div_ceil(PER_SECTOR) < entry.length;
        is_valid.then_some(entry)
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

    pub fn corrupt(&self, reason: &str) -> Error {
        self.file.corrupt(reason).at(self.offset)
    }

    /// Returns the offset of a sector in the file.
    fn sector_offset(&self, sector: u64) -> u64 {
        self.offset + sector % self.sectors * SECTOR
    }

    fn read_sector(&self, sector: u64, buf: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buf, self.sector_offset(sector))
    }
}

/// Returns how many of the first `count` descriptors in `bytes` have a data sector. `None` if one is not
/// valid.
fn data_descriptors(bytes: &[u8], entry: LogEntry, count: u64) -> Option<u64> {
    let mut data = 0;
    for bytes in bytes.chunks_exact(DESCRIPTOR).take(count.min(PER_SECTOR) as usize) {
        let [length, offset, sequence] = [8, 16, 24].map(|at| u64::from_le_bytes(array(bytes, at)));
        let is_data = bytes.starts_with(DATA_DESCRIPTOR);
        let is_zero = bytes.starts_with(ZERO_DESCRIPTOR) && length.is_multiple_of(SECTOR);
        if !is_data && !is_zero || !offset.is_multiple_of(SECTOR) || sequence != entry.sequence {
            return None;
        }
        data += u64::from(is_data);
    }
    Some(data)
}

/// Returns whether a sector is a data sector of the entry with this sequence number.
fn is_data(sector: &[u8], sequence: u64) -> bool {
    let [high, low] = [4, 4092].map(|at| u64::from(u32::from_le_bytes(array(sector, at))));
    sector.starts_with(DATA_SIGNATURE) && high << 32 | low == sequence
}

/// Size of a sector of the log.
pub(super) const SECTOR: u64 = 4 * KIB;

/// Maximum length in bytes of a log that is replayed. Hyper-V and QEMU create logs of 1 MiB.
pub(super) const MAX_LOG: u64 = 64 * MIB;

const ENTRY_SIGNATURE: &[u8] = b"loge";
const DATA_DESCRIPTOR: &[u8] = b"desc";
const ZERO_DESCRIPTOR: &[u8] = b"zero";
const DATA_SIGNATURE: &[u8] = b"data";

const HEADER: usize = 64;
const DESCRIPTOR: usize = 32;

/// Number of descriptors in the first sector of an entry, and in the others.
const IN_FIRST: u64 = (SECTOR - HEADER as u64) / DESCRIPTOR as u64;
const PER_SECTOR: u64 = SECTOR / DESCRIPTOR as u64;
