//! GUID partition tables (UEFI specification, section 5.3): a header and its entries, each with a
//! CRC-32, at the beginning of the disk, and a copy at its end.

use libdeflater::crc32;

use super::entries::{Details, Label, Partition, Table, TableError};
use super::kind::{Guid, Kind};
use crate::Source;

/// Returns the first valid copy.
pub(super) fn table(source: &dyn Source) -> Result<Table, TableError> {
    let mut reason = None;
    for sector_size in [512, 4096] {
        let last = (source.size() / sector_size).saturating_sub(1);
        let primary = match table_at(source, sector_size, 1) {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        if let Ok(backup) = table_at(source, sector_size, last) {
            return Ok(Table { primary: Some(TableError::Primary(primary)), ..backup });
        }
        reason.get_or_insert(primary);
    }
    Err(TableError::Gpt(reason.unwrap_or_default()))
}

/// Returns the table whose header is in this sector.
fn table_at(source: &dyn Source, sector_size: u64, sector: u64) -> Result<Table, String> {
    let header = Header::read(source, sector_size, sector)?;
    let entries = read(source, header.entries, u64::from(header.count) * u64::from(header.size))?;
    if crc32(&entries) != header.entries_crc {
        return Err("the checksum of its entries is wrong".to_owned());
    }
    let mut table = Table { label: Some(Label::Gpt), ..Table::default() };
    for (number, entry) in (1..).zip(entries.chunks_exact(header.size as usize)) {
        let is_used = entry[..16].iter().any(|&byte| byte != 0);
        let bytes = || {
            let (first, last) = (u64_at(entry, 32), u64_at(entry, 40));
            let sectors = last.checked_sub(first)?.checked_add(1)?;
            Some((first.checked_mul(sector_size)?, sectors.checked_mul(sector_size)?))
        };
        if is_used {
            let (offset, length) =
                bytes().ok_or_else(|| format!("partition {number} ends before it begins"))?;
            table.partitions.push(Partition { number, offset, length });
            table.details.insert(number, details(entry));
        }
    }
    Ok(table)
}

/// Returns what an entry says beside the place. It has at least 128 bytes.
fn details(entry: &[u8]) -> Details {
    let guid = |at: usize| entry[at..].first_chunk().map_or(Guid([0; 16]), |it| Guid(*it));
    let units = entry[56..128].chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    let name = String::from_utf16_lossy(&units);
    Details { kind: Kind::Gpt(guid(0)), uuid: Some(guid(16)), name }
}

/// The fields of a header that describe the entries.
struct Header {
    /// Offset of the first entry in bytes.
    entries: u64,
    count: u32,
    /// Size of an entry in bytes.
    size: u32,
    entries_crc: u32,
}

impl Header {
    fn read(source: &dyn Source, sector_size: u64, sector: u64) -> Result<Self, String> {
        let mut bytes = read(source, sector.saturating_mul(sector_size), sector_size)?;
        if !bytes.starts_with(b"EFI PART") {
            return Err("it has no GPT header".to_owned());
        }
        let length = u32_at(&bytes, 12) as usize;
        let crc = u32_at(&bytes, 16);
        bytes[16..20].fill(0);
        if !(HEADER_SIZE..=bytes.len()).contains(&length) || crc32(&bytes[..length]) != crc {
            return Err("the checksum of its header is wrong".to_owned());
        }
        if u64_at(&bytes, 24) != sector {
            return Err("its header belongs to another sector".to_owned());
        }
        let (count, size) = (u32_at(&bytes, 80), u32_at(&bytes, 84));
        if count > MAX_ENTRIES || !(MIN_ENTRY_SIZE..=MAX_ENTRY_SIZE).contains(&size) {
            return Err(format!("{count} entries of {size} bytes"));
        }
        let entries = u64_at(&bytes, 72).checked_mul(sector_size);
        let entries = entries.ok_or("its entries lie past the end of the disk")?;
        Ok(Self { entries, count, size, entries_crc: u32_at(&bytes, 88) })
    }
}

fn read(source: &dyn Source, offset: u64, length: u64) -> Result<Vec<u8>, String> {
    if offset.checked_add(length).is_none_or(|end| end > source.size()) {
        return Err("it lies past the end of the disk".to_owned());
    }
    let mut bytes = vec![0; length as usize];
    source.read_exact_at(&mut bytes, offset).map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |it| u32::from_le_bytes(*it))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |it| u64::from_le_bytes(*it))
}

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
