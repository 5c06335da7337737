//! Partitions of a whole disk.
//!
//! GPT is read by the crate `gptman`, after what it would believe was checked: it makes room for as
//! many entries as a header claims. An MBR is four entries of sixteen bytes, and logical partitions
//! are a list of such sectors.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use blkimage::{Extent, Lent, Source};
use gptman::GPTHeader;

use crate::bytes::{u8_at, u16_at, u32_at};

/// A part of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number, as Linux counts: logical ones from 5 on.
    pub number: u32,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// The partition table of a disk.
#[derive(Debug, Default)]
pub struct Table {
    /// By number.
    pub partitions: Vec<Partition>,
    /// Why there may be more: the list of logical partitions breaks off.
    pub lost: Option<TableError>,
}

/// Why there is no list of partitions, or no end of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The disk cannot be read.
    #[error(transparent)]
    Image(#[from] blkimage::Error),
    /// Both copies of a GPT are damaged.
    #[error("the partition table is damaged: {0}")]
    Gpt(String),
    /// A record of a logical partition that makes no sense.
    #[error("the partition table is damaged: {reason} at sector {sector}")]
    Mbr {
        /// What is wrong.
        reason: &'static str,
        /// Where the record is.
        sector: u64,
    },
}

/// The partitions of a disk; none if it has no table.
///
/// # Errors
///
/// The disk cannot be read, or both copies of its GPT make no sense.
pub fn table(source: &dyn Source) -> Result<Table, TableError> {
    let mut table = Table::default();
    let Some(sector) = boot_sector(source, 0)? else { return Ok(table) };
    if entries(&sector).iter().any(|entry| entry.kind == GPT_PROTECTION) {
        table.partitions = gpt(source)?;
        return Ok(table);
    }
    for (number, entry) in (1..).zip(entries(&sector)) {
        if entry.is_extended() {
            if let Err(error) = logical(source, entry.start, &mut table.partitions) {
                table.lost = Some(error);
            }
        } else if entry.is_used() {
            table.partitions.push(entry.partition(number, 0));
        }
    }
    table.partitions.sort_by_key(|partition| partition.number);
    Ok(table)
}

/// An entry of an MBR, in sectors.
#[derive(Clone, Copy)]
struct Entry {
    kind: u8,
    start: u32,
    count: u32,
}

impl Entry {
    fn is_used(self) -> bool {
        self.kind != 0 && self.count > 0
    }

    fn is_extended(self) -> bool {
        self.is_used() && matches!(self.kind, 0x05 | 0x0f | 0x85)
    }

    /// The partition of an entry in the sector `base`.
    fn partition(self, number: u32, base: u64) -> Partition {
        let offset = (base + u64::from(self.start)) * SECTOR;
        Partition { number, offset, length: u64::from(self.count) * SECTOR }
    }
}

/// The partition table of a boot sector, if it is one.
fn boot_sector(source: &dyn Source, sector: u64) -> Result<Option<Vec<u8>>, TableError> {
    let offset = sector * SECTOR;
    if offset + SECTOR > source.size() {
        return Ok(None);
    }
    let mut bytes = vec![0; SECTOR as usize];
    source.read_exact_at(&mut bytes, offset)?;
    let is_boot_sector = u16_at(&bytes, 510) == Some(BOOT_SIGNATURE);
    // A boot sector may be one of a file system: flags of partitions are 0 or 0x80.
    let has_table = (0..4).all(|index| matches!(bytes[ENTRIES + index * ENTRY], 0 | 0x80));
    Ok((is_boot_sector && has_table).then_some(bytes))
}

fn entries(sector: &[u8]) -> [Entry; 4] {
    [0, 1, 2, 3].map(|index| {
        let at = ENTRIES + index * ENTRY;
        Entry {
            kind: u8_at(sector, at + 4).unwrap_or_default(),
            start: u32_at(sector, at + 8).unwrap_or_default(),
            count: u32_at(sector, at + 12).unwrap_or_default(),
        }
    })
}

/// Follows the list of logical partitions, which only leads forward. An extended partition without
/// any has a record, too.
fn logical(source: &dyn Source, first: u32, found: &mut Vec<Partition>) -> Result<(), TableError> {
    let mut next = u64::from(first);
    for number in 5..5 + MAX_LOGICAL {
        let Some(sector) = boot_sector(source, next)? else {
            let reason = "no record of a logical partition";
            return Err(TableError::Mbr { reason, sector: next });
        };
        let [partition, link, ..] = entries(&sector);
        if partition.is_used() {
            found.push(partition.partition(number, next));
        }
        if !link.is_used() {
            return Ok(());
        }
        let place = u64::from(first) + u64::from(link.start);
        if place <= next {
            let reason = "its logical partitions lead back";
            return Err(TableError::Mbr { reason, sector: next });
        }
        next = place;
    }
    Err(TableError::Mbr { reason: "too many logical partitions", sector: next })
}

fn gpt(source: &dyn Source) -> Result<Vec<Partition>, TableError> {
    let mut reason = None;
    for sector_size in [512, 4096] {
        let last = (source.size() / sector_size).saturating_sub(1) * sector_size;
        for place in [sector_size, last] {
            match gpt_at(source, sector_size, place) {
                Ok(found) => return Ok(found),
                Err(error) => {
                    reason.get_or_insert(error);
                }
            }
        }
    }
    Err(TableError::Gpt(reason.unwrap_or_default()))
}

/// The partitions of the GPT whose header begins at `place`.
fn gpt_at(source: &dyn Source, sector_size: u64, place: u64) -> Result<Vec<Partition>, String> {
    let mut reader = SourceReader { source, position: place };
    let header = GPTHeader::read_from(&mut reader).map_err(|error| error.to_string())?;
    let count = header.number_of_partition_entries;
    if count > MAX_GPT_ENTRIES || !(128..=4096).contains(&header.size_of_partition_entry) {
        return Err(format!("{count} entries of {} bytes", header.size_of_partition_entry));
    }
    if header.partition_entry_lba > source.size() / sector_size {
        return Err("its entries lie past the end of the disk".to_owned());
    }
    let entries =
        header.read_partitions(&mut reader, sector_size).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    for (number, entry) in (1..).zip(entries) {
        let bytes = || {
            let sectors = entry.ending_lba.checked_sub(entry.starting_lba)?.checked_add(1)?;
            Some((entry.starting_lba.checked_mul(sector_size)?, sectors.checked_mul(sector_size)?))
        };
        if entry.is_used() {
            let (offset, length) =
                bytes().ok_or_else(|| format!("partition {number} ends before it begins"))?;
            found.push(Partition { number, offset, length });
        }
    }
    Ok(found)
}

/// A part of a source, as a source. What lies past the end of the whole is cut off.
pub struct Window {
    source: Arc<dyn Source>,
    offset: u64,
    length: u64,
}

impl Window {
    /// `length` bytes from `offset` on; `None` if that begins past the end.
    pub fn new(source: Arc<dyn Source>, offset: u64, length: u64) -> Option<Self> {
        let left = source.size().checked_sub(offset)?;
        Some(Self { source, offset, length: length.min(left) })
    }

    fn check(&self, offset: u64, length: u64) -> blkimage::Result<()> {
        if offset.checked_add(length).is_some_and(|end| end <= self.length) {
            return Ok(());
        }
        let reason = format!("{length} bytes asked for past the end of the partition");
        Err(blkimage::Error::new(blkimage::ErrorKind::Argument, "", reason).at(offset))
    }
}

impl Source for Window {
    fn size(&self) -> u64 {
        self.length
    }

    fn extent(&self, offset: u64, limit: u64) -> blkimage::Result<Extent> {
        self.check(offset, 1)?;
        let limit = limit.min(self.length - offset);
        let extent = self.source.extent(self.offset + offset, limit)?;
        Ok(Extent { offset, ..extent })
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> blkimage::Result<()> {
        self.check(offset, buf.len() as u64)?;
        self.source.read_exact_at(buf, self.offset + offset)
    }

    fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        self.check(offset, length as u64).ok()?;
        self.source.lend(self.offset + offset, length)
    }

    fn granularity(&self) -> u64 {
        self.source.granularity()
    }

    fn check_unchanged(&self) -> blkimage::Result<()> {
        self.source.check_unchanged()
    }
}

/// Reads a source from a position on, as `gptman` wants it.
struct SourceReader<'a> {
    source: &'a dyn Source,
    position: u64,
}

impl Read for SourceReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.source.size().saturating_sub(self.position);
        let length = left.min(buffer.len() as u64) as usize;
        let read = self.source.read_exact_at(&mut buffer[..length], self.position);
        read.map_err(|error| io::Error::other(error.to_string()))?;
        self.position += length as u64;
        Ok(length)
    }
}

impl Seek for SourceReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(distance) => self.source.size().checked_add_signed(distance),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

const SECTOR: u64 = 512;
const BOOT_SIGNATURE: u16 = 0xaa55;
const ENTRIES: usize = 446;
const ENTRY: usize = 16;

/// The type of the entry that keeps others from a disk with a GPT.
const GPT_PROTECTION: u8 = 0xee;

/// Linux stops there, too.
const MAX_LOGICAL: u32 = 251;

/// Eight times what a GPT has.
const MAX_GPT_ENTRIES: u32 = 1024;
