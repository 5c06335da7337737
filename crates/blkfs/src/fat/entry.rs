//! Directory entries of FAT: short names, and the long names before them.

use super::clusters::Entry;
use crate::bytes::{le16_at, le32_at};

/// Attribute of the label of the volume.
const VOLUME: u8 = 0x08;

/// Attribute of directories.
const DIRECTORY: u8 = 0x10;

/// Attributes of a part of a long name.
const LONG: u8 = 0x0f;

/// What a directory entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The end of the directory.
    End,
    /// Deleted.
    Deleted,
    /// A part of a long name.
    Long,
    /// The label of the volume.
    Label,
    /// `.` or `..`.
    Dots,
    /// A file or a directory.
    Object,
}

impl Form {
    pub fn of(entry: &Entry) -> Self {
        let attributes = entry[11] & 0x3f;
        match entry[0] {
            0 => Self::End,
            0xe5 => Self::Deleted,
            _ if attributes == LONG => Self::Long,
            _ if attributes & VOLUME != 0 => Self::Label,
            b'.' if is_directory(entry) && is_dots(entry) => Self::Dots,
            _ => Self::Object,
        }
    }
}

pub(super) fn is_directory(entry: &Entry) -> bool {
    entry[11] & DIRECTORY != 0
}

fn is_dots(entry: &Entry) -> bool {
    matches!(&entry[..11], b".          " | b"..         ")
}

/// Returns whether the entry belongs to a directory itself, with which it begins.
pub(super) fn is_self(entry: &Entry) -> bool {
    is_directory(entry) && &entry[..11] == b".          "
}

/// Returns the first cluster.
pub(super) fn first_cluster(entry: &Entry, is_wide: bool) -> u32 {
    let high = if is_wide { le16_at(entry, 20) } else { None };
    u32::from(high.unwrap_or_default()) << 16 | u32::from(le16_at(entry, 26).unwrap_or_default())
}

/// Returns the size of a file.
pub(super) fn size(entry: &Entry) -> u64 {
    le32_at(entry, 28).unwrap_or_default().into()
}

/// Returns the 11 bytes of a name as they are meant: the first letter 0xe5 is stored as 5.
pub(super) fn stored_name(entry: &Entry) -> [u8; 11] {
    let mut name = [0; 11];
    name.copy_from_slice(&entry[..11]);
    if name[0] == 5 {
        name[0] = 0xe5;
    }
    name
}

/// Returns a label without the spaces after it.
pub(super) fn trimmed(label: &[u8]) -> &[u8] {
    let length = label.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &label[..length]
}

/// Appends the short name of an entry, in the case that Windows NT stores in two bits.
pub(super) fn short_name(entry: &Entry, name: &mut Vec<u8>) {
    let stored = stored_name(entry);
    let (base, extension) = stored.split_at(8);
    let mut append = |part: &[u8], is_lower| {
        name.extend(trimmed(part).iter().map(|byte| match byte {
            b'A'..=b'Z' if is_lower => byte.to_ascii_lowercase(),
            _ => *byte,
        }));
    };
    append(base, entry[12] & 0x08 != 0);
    if !trimmed(extension).is_empty() {
        append(b".", false);
        append(extension, entry[12] & 0x10 != 0);
    }
}

/// The long name before a short one: its parts in the reverse order.
#[derive(Debug)]
pub(super) struct LongName {
    /// The number of the next part, 0 after the last one, if there is a name.
    next: Option<u8>,
    /// Number of the code units of all parts.
    length: usize,
    units: [u16; MAX_PARTS as usize * PART],
    checksum: u8,
    /// The checksum of the first part that has another one.
    other: Option<u8>,
    /// Offset of the first entry.
    start: u64,
}

/// What a long name is to the short name that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// There is no whole long name.
    None,
    /// Its own.
    Equal,
    /// The checksum of the short name, of the long one, and the offset and size of the long one.
    Wrong(u8, u8, u64, u64),
}

impl LongName {
    pub fn new() -> Self {
        let units = [0; MAX_PARTS as usize * PART];
        Self { next: None, length: 0, units, checksum: 0, other: None, start: 0 }
    }

    /// Forgets the parts, which belong to no short name.
    pub fn reset(&mut self) {
        self.next = None;
    }

    /// Adds the next entry of a directory. A part that does not continue the name is ignored, with all before it.
    pub fn push(&mut self, entry: &Entry, offset: u64) {
        let (number, checksum) = (entry[0] & 0x3f, entry[13]);
        if entry[0] & 0x40 != 0 && (1..=MAX_PARTS).contains(&number) {
            self.next = Some(number);
            self.length = usize::from(number) * PART;
            (self.checksum, self.other, self.start) = (checksum, None, offset);
        } else if number == 0 || self.next != Some(number) {
            return self.reset();
        }
        if checksum != self.checksum {
            self.other.get_or_insert(checksum);
        }
        self.next = Some(number - 1);
        let part = &mut self.units[usize::from(number - 1) * PART..][..PART];
        for (unit, at) in part.iter_mut().zip(UNITS) {
            *unit = le16_at(entry, at).unwrap_or_default();
        }
    }

    /// Returns what the name is to the short name that follows. The next call of [`push`](Self::push) begins another name.
    pub fn finish(&mut self, entry: &Entry) -> Match {
        if self.next.take() != Some(0) {
            return Match::None;
        }
        let sum = checksum(entry);
        match self.other.into_iter().chain([self.checksum]).find(|stored| *stored != sum) {
            None => Match::Equal,
            Some(stored) => Match::Wrong(sum, stored, self.start, self.size()),
        }
    }

    /// Returns the size of the entries of the name in bytes.
    pub fn size(&self) -> u64 {
        (self.length / PART * 32) as u64
    }

    /// Appends the name in UTF-8.
    pub fn append_to(&self, name: &mut Vec<u8>) {
        let units = self.units[..self.length].iter().copied().take_while(|unit| *unit != 0);
        append_utf8(units, name);
    }
}

/// Appends UTF-16 as UTF-8, with U+FFFD for halves of a pair.
pub(crate) fn append_utf8(units: impl IntoIterator<Item = u16>, name: &mut Vec<u8>) {
    for letter in char::decode_utf16(units) {
        let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
        name.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// Returns the checksum of a short name.
fn checksum(entry: &Entry) -> u8 {
    entry[..11].iter().fold(0_u8, |sum, byte| sum.rotate_right(1).wrapping_add(*byte))
}

/// Number of code units of a part.
const PART: usize = 13;

/// Maximum number of parts.
const MAX_PARTS: u8 = 20;

/// Offsets of the code units of a part.
const UNITS: [usize; PART] = [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30];
