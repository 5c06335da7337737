//! A file in a directory of exFAT: entries that follow each other, with a checksum.

use super::upcase::UpCase;
use crate::bytes::{le16_at, le32_at, le64_at};
use crate::fat::append_utf8;
use crate::fat::clusters::Entry;

/// The type of the first entry of a file.
pub(super) const FILE: u8 = 0x85;

/// The type of the entry with the place of the content.
const STREAM: u8 = 0xc0;

/// The type of the entries with the name.
const NAME: u8 = 0xc1;

/// The type of the entries of vendors that own clusters.
const VENDOR_ALLOCATION: u8 = 0xe1;

/// The entries of a file.
#[derive(Debug, Default)]
pub(super) struct EntrySet {
    entries: Vec<Entry>,
    /// Offset of the first entry.
    pub start: u64,
}

/// The place of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    pub first: u32,
    pub length: u64,
    /// Number of bytes from the beginning on that were written.
    pub valid: u64,
    /// Whether the clusters follow each other, so that the table has no chain of them.
    pub is_row: bool,
}

impl EntrySet {
    /// Begins a set with its first entry.
    pub fn begin(&mut self, entry: &Entry, offset: u64) {
        self.entries.clear();
        self.entries.push(*entry);
        self.start = offset;
    }

    /// Adds the next entry of the directory if it belongs to the set.
    pub fn push(&mut self, entry: &Entry) -> bool {
        let belongs = is_secondary(entry[0]);
        if belongs {
            self.entries.push(*entry);
        }
        belongs
    }

    /// Forgets the entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns whether all entries are there that the first one announces.
    pub fn is_whole(&self) -> bool {
        self.entries.first().is_some_and(|file| self.entries.len() == usize::from(file[1]) + 1)
    }

    /// Returns the size of the entries in bytes.
    pub fn size(&self) -> u64 {
        self.entries.len() as u64 * 32
    }

    /// Returns the computed and the stored checksum.
    pub fn checksum(&self) -> (u16, u16) {
        let stored = self.entries.first().and_then(|file| le16_at(file, 2)).unwrap_or_default();
        (entries_checksum(&self.entries), stored)
    }

    pub fn is_directory(&self) -> bool {
        self.entries.first().is_some_and(|file| file[4] & 0x10 != 0)
    }

    /// Returns the place of the content, unless the second entry is of another type.
    pub fn stream(&self) -> Option<Stream> {
        Stream::parse(self.stream_entry()?)
    }

    /// Returns the places of what vendors store for the file.
    pub fn vendor_streams(&self) -> impl Iterator<Item = Stream> {
        let entries = self.entries.iter().filter(|entry| entry[0] == VENDOR_ALLOCATION);
        entries.filter_map(|entry| {
            let (first, length) = (le32_at(entry, 20)?, le64_at(entry, 24)?);
            Some(Stream { first, length, valid: length, is_row: entry[1] & 2 != 0 })
        })
    }

    /// Appends the name in UTF-8.
    pub fn append_name(&self, name: &mut Vec<u8>) {
        append_utf8(self.units(), name);
    }

    /// Returns the computed and the stored hash of the name.
    pub fn name_hash(&self, upcase: &UpCase) -> Option<(u16, u16)> {
        let stored = le16_at(self.stream_entry()?, 4)?;
        let hash = self.units().fold(0, |hash, unit| {
            let [low, high] = upcase.convert(unit).to_le_bytes();
            add(add(hash, low), high)
        });
        Some((hash, stored))
    }

    fn stream_entry(&self) -> Option<&Entry> {
        self.entries.get(1).filter(|entry| entry[0] == STREAM)
    }

    /// Returns the code units of the name.
    fn units(&self) -> impl Iterator<Item = u16> {
        let length = self.stream_entry().map_or(0, |stream| stream[3]);
        let names = self.entries.iter().skip(2).take_while(|entry| entry[0] == NAME);
        let units = names.flat_map(|entry| entry[2..].as_chunks().0);
        units.map(|unit| u16::from_le_bytes(*unit)).take(length.into())
    }
}

impl Stream {
    fn parse(entry: &Entry) -> Option<Self> {
        Some(Self {
            first: le32_at(entry, 20)?,
            length: le64_at(entry, 24)?,
            valid: le64_at(entry, 8)?,
            is_row: entry[1] & 2 != 0,
        })
    }
}

/// Returns whether an entry with a type belongs to the one before it.
fn is_secondary(kind: u8) -> bool {
    kind & 0xc0 == 0xc0
}

/// Returns the checksum of entries, without the two bytes in which it is stored.
pub(super) fn entries_checksum(entries: &[Entry]) -> u16 {
    let bytes = entries.as_flattened().iter().enumerate();
    bytes.filter(|(at, _)| !matches!(at, 2 | 3)).fold(0, |sum, (_, byte)| add(sum, *byte))
}

fn add(sum: u16, byte: u8) -> u16 {
    sum.rotate_right(1).wrapping_add(byte.into())
}
