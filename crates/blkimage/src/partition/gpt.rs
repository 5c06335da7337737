//! GUID partition tables.
//!
//! Read by the crate `gptman`, after what it would believe was checked: it makes room for as many
//! entries as a header claims.

use std::io::{self, Read, Seek, SeekFrom};

use gptman::GPTHeader;

use super::entries::{Partition, TableError};
use crate::Source;

/// Returns the partitions of the first copy that makes sense.
pub(super) fn partitions(source: &dyn Source) -> Result<Vec<Partition>, TableError> {
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

/// Eight times what a GPT has.
const MAX_GPT_ENTRIES: u32 = 1024;
