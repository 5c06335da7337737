//! GUID partition tables (UEFI specification, section 5.3): a header and its entries, each with a
//! CRC-32, at the beginning of the disk, and a copy at its end.

use std::fmt;

use libdeflater::crc32;

use super::entries::{Details, Label, Partition, Table, TableError};
use super::kind::{Guid, Kind};
use crate::Source;

/// Returns the first valid copy.
pub(super) fn table(source: &dyn Source) -> Result<Table, TableError> {
    let mut reason = None;
    for sector_size in SECTOR_SIZES {
        let last = (source.size() / sector_size).saturating_sub(1);
        let primary = match table_at(source, sector_size, 1) {
            Ok(found) => return Ok(found),
            Err(error) => error.to_string(),
        };
        if let Ok(backup) = table_at(source, sector_size, last) {
            return Ok(Table { primary: Some(TableError::Primary(primary)), ..backup });
        }
        reason.get_or_insert(primary);
    }
    Err(TableError::Gpt(reason.unwrap_or_default()))
}

/// Returns the table whose header is in this sector.
fn table_at(source: &dyn Source, sector_size: u64, sector: u64) -> Result<Table, Defect> {
    Header::read(source, sector_size, sector)?.table(source, sector_size)
}

/// Defect of a part of a copy.
#[derive(Debug)]
pub(super) enum Defect {
    /// A checksum is wrong: of the entries, or of the header.
    Checksum {
        is_of_entries: bool,
        stored: u32,
        computed: u32,
    },
    /// There is none.
    Absent,
    /// Something else is wrong.
    Other(String),
    Unreadable(crate::Error),
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum { is_of_entries: true, .. } => {
                f.write_str("the checksum of its entries is wrong")
            }
            Self::Checksum { .. } => f.write_str("the checksum of its header is wrong"),
            Self::Absent => f.write_str("it has no GPT header"),
            Self::Other(reason) => f.write_str(reason),
            Self::Unreadable(error) => error.fmt(f),
        }
    }
}

/// Returns what an entry says besides the place. It has at least 128 bytes.
fn details(entry: &[u8]) -> Details {
    let units = entry[56..128].chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    let name = String::from_utf16_lossy(&units);
    Details { kind: Kind::Gpt(guid(entry, 0)), uuid: Some(guid(entry, 16)), name }
}

/// An intact header.
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// Length of what the checksum covers in bytes.
    pub length: u64,
    /// Sector of the other copy.
    pub other: u64,
    /// First and last sector that partitions may use.
    pub usable: (u64, u64),
    pub disk: Guid,
    /// Offset of the first entry in bytes.
    pub entries: u64,
    count: u32,
    /// Size of an entry in bytes.
    size: u32,
    entries_crc: u32,
}

impl Header {
    pub fn read(source: &dyn Source, sector_size: u64, sector: u64) -> Result<Self, Defect> {
        let mut bytes = read(source, sector.saturating_mul(sector_size), sector_size)?;
        if !bytes.starts_with(SIGNATURE) {
            return Err(Defect::Absent);
        }
        let length = u32_at(&bytes, 12) as usize;
        let stored = u32_at(&bytes, 16);
        bytes[16..20].fill(0);
        let covered = bytes.get(..length).filter(|covered| covered.len() >= HEADER_SIZE);
        let computed = crc32(covered.unwrap_or(&bytes));
        if covered.is_none() || computed != stored {
            return Err(Defect::Checksum { is_of_entries: false, stored, computed });
        }
        if u64_at(&bytes, 24) != sector {
            return Err(Defect::Other("its header belongs to another sector".to_owned()));
        }
        let (count, size) = (u32_at(&bytes, 80), u32_at(&bytes, 84));
        if count > MAX_ENTRIES || !(MIN_ENTRY_SIZE..=MAX_ENTRY_SIZE).contains(&size) {
            return Err(Defect::Other(format!("{count} entries of {size} bytes")));
        }
        let entries = u64_at(&bytes, 72).checked_mul(sector_size);
        let past_end = || Defect::Other("its entries lie past the end of the disk".to_owned());
        Ok(Self {
            length: length as u64,
            other: u64_at(&bytes, 32),
            usable: (u64_at(&bytes, 40), u64_at(&bytes, 48)),
            disk: guid(&bytes, 56),
            entries: entries.ok_or_else(past_end)?,
            count,
            size,
            entries_crc: u32_at(&bytes, 88),
        })
    }

    /// Returns the length of all entries in bytes.
    pub fn entries_length(&self) -> u64 {
        u64::from(self.count) * u64::from(self.size)
    }

    /// Returns whether another copy describes the same disk and partitions.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.usable, self.disk, self.count, self.size, self.entries_crc)
            == (other.usable, other.disk, other.count, other.size, other.entries_crc)
    }

    /// Returns the partitions.
    pub fn table(&self, source: &dyn Source, sector_size: u64) -> Result<Table, Defect> {
        let entries = read(source, self.entries, self.entries_length())?;
        let (stored, computed) = (self.entries_crc, crc32(&entries));
        if computed != stored {
            return Err(Defect::Checksum { is_of_entries: true, stored, computed });
        }
        let mut table = Table { label: Some(Label::Gpt), ..Table::default() };
        for (number, entry) in (1..).zip(entries.chunks_exact(self.size as usize)) {
            let is_used = entry[..16].iter().any(|&byte| byte != 0);
            let bytes = || {
                let (first, last) = (u64_at(entry, 32), u64_at(entry, 40));
                let sectors = last.checked_sub(first)?.checked_add(1)?;
                Some((first.checked_mul(sector_size)?, sectors.checked_mul(sector_size)?))
            };
            if is_used {
                let ends_before =
                    || Defect::Other(format!("partition {number} ends before it begins"));
                let (offset, length) = bytes().ok_or_else(ends_before)?;
                table.partitions.push(Partition { number, offset, length });
                table.details.insert(number, details(entry));
            }
        }
        Ok(table)
    }
}

fn read(source: &dyn Source, offset: u64, length: u64) -> Result<Vec<u8>, Defect> {
    if offset.checked_add(length).is_none_or(|end| end > source.size()) {
        return Err(Defect::Other("it lies past the end of the disk".to_owned()));
    }
    let mut bytes = vec![0; length as usize];
    source.read_exact_at(&mut bytes, offset).map_err(Defect::Unreadable)?;
    Ok(bytes)
}

fn guid(bytes: &[u8], at: usize) -> Guid {
    bytes[at..].first_chunk().map_or(Guid([0; 16]), |it| Guid(*it))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |it| u32::from_le_bytes(*it))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |it| u64::from_le_bytes(*it))
}

/// Sizes of a sector in bytes.
pub(super) const SECTOR_SIZES: [u64; 2] = [512, 4096];

const SIGNATURE: &[u8] = b"EFI PART";

/// Size of a header in bytes, as specified.
const HEADER_SIZE: usize = 92;

/// Smallest size of an entry in bytes, as specified.
const MIN_ENTRY_SIZE: u32 = 128;

/// Maximum size of an entry of a GPT. All entries are read at once.
/// Limit in bytes.
const MAX_ENTRY_SIZE: u32 = 4096;

/// Maximum number of entries of a GPT, eight times the usual number.
/// Limit in entries.
const MAX_ENTRIES: u32 = 1024;
