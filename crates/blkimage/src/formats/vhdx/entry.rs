//! An entry of the log, and its parts: descriptors, then the data sectors of some of them.

use super::guid::Guid;
use super::units::KIB;
use crate::formats::fields::array;

/// The header of an entry.
#[derive(Clone, Copy)]
pub(super) struct LogEntry {
    /// Index of the first sector.
    pub start: u64,
    /// Length in sectors.
    pub length: u64,
    pub sequence: u64,
    /// Offset in the log of the first entry that is not yet in place.
    pub tail: u64,
    pub descriptors: u64,
    /// Size of the file, of which everything had reached the disk.
    pub flushed_size: u64,
    /// Size that the file has at least.
    pub last_size: u64,
}

/// A sector of the log.
pub(super) type Sector = [u8; SECTOR as usize];

impl LogEntry {
    /// Parses the header of an entry that begins at the sector `start` of a log of this many sectors. `None`
    /// if it is not one of the log with this GUID, or has a length that is not possible.
    pub fn parse(start: u64, first: &Sector, guid: Guid, sectors: u64) -> Option<Self> {
        let number = |at| u64::from_le_bytes(array(first, at));
        let [length, tail, descriptors] =
            [LENGTH, 12, 24].map(|at| u64::from(u32::from_le_bytes(array(first, at))));
        let entry = Self {
            start,
            length: length / SECTOR,
            sequence: number(SEQUENCE),
            tail,
            descriptors,
            flushed_size: number(48),
            last_size: number(56),
        };
        let is_entry = first.starts_with(SIGNATURE)
            && Guid(array(first, GUID)) == guid
            && length.is_multiple_of(SECTOR)
            && (1..=sectors).contains(&entry.length);
        is_entry.then_some(entry)
    }
}

/// Checks the parts of an entry, sector by sector.
pub(super) struct Parts {
    sequence: u64,
    /// Number of descriptors that are still to come.
    descriptors: u64,
    /// Number of data sectors that are still to come.
    data: u64,
    are_valid: bool,
    /// Whether the sectors of descriptors are zero after the last one.
    is_padded: bool,
}

impl Parts {
    pub fn new(entry: LogEntry, first: &Sector) -> Self {
        let LogEntry { sequence, descriptors, .. } = entry;
        let mut parts =
            Self { sequence, descriptors, data: 0, are_valid: sequence > 0, is_padded: true };
        parts.add_descriptors(&first[HEADER..]);
        parts
    }

    /// Adds the next sector.
    pub fn add(&mut self, sector: &Sector) {
        if self.descriptors > 0 {
            self.add_descriptors(sector);
        } else if self.data > 0 {
            self.data -= 1;
            self.are_valid &= is_data(sector, self.sequence);
        }
    }

    fn add_descriptors(&mut self, bytes: &[u8]) {
        let count = self.descriptors.min((bytes.len() / DESCRIPTOR) as u64);
        let (descriptors, padding) = bytes.split_at(count as usize * DESCRIPTOR);
        self.descriptors -= count;
        self.is_padded &= padding.iter().all(|byte| *byte == 0);
        for bytes in descriptors.chunks_exact(DESCRIPTOR) {
            let [length, offset, sequence] =
                [8, 16, 24].map(|at| u64::from_le_bytes(array(bytes, at)));
            let is_data = bytes.starts_with(DATA_DESCRIPTOR);
            let is_zero = bytes.starts_with(ZERO_DESCRIPTOR) && length.is_multiple_of(SECTOR);
            self.are_valid &=
                (is_data || is_zero) && offset.is_multiple_of(SECTOR) && sequence == self.sequence;
            self.data += u64::from(is_data);
        }
    }

    /// Returns whether the entry has all of its parts, and each of them is possible.
    pub fn are_valid(&self) -> bool {
        self.are_valid && self.descriptors == 0 && self.data == 0
    }

    /// Returns whether every sector is one of this entry, so that none holds what was there before.
    pub fn are_written(&self) -> bool {
        self.are_valid() && self.is_padded
    }
}

/// Returns whether a sector is a data sector of the entry with this sequence number.
fn is_data(sector: &Sector, sequence: u64) -> bool {
    let [high, low] = [4, 4092].map(|at| u64::from(u32::from_le_bytes(array(sector, at))));
    sector.starts_with(DATA_SIGNATURE) && high << 32 | low == sequence
}

/// Size of a sector of the log in bytes.
pub(super) const SECTOR: u64 = 4 * KIB;

/// Sizes of the header of an entry and of a descriptor in bytes.
pub(super) const HEADER: usize = 64;
pub(super) const DESCRIPTOR: usize = 32;

/// Number of descriptors in the first sector of an entry.
pub(super) const IN_FIRST: u64 = (SECTOR - HEADER as u64) / DESCRIPTOR as u64;

/// Offsets in the header of an entry.
pub(super) const LENGTH: usize = 8;
pub(super) const SEQUENCE: usize = 16;
pub(super) const GUID: usize = 32;

pub(super) const SIGNATURE: &[u8] = b"loge";
pub(super) const DATA_DESCRIPTOR: &[u8] = b"desc";
const ZERO_DESCRIPTOR: &[u8] = b"zero";
const DATA_SIGNATURE: &[u8] = b"data";
