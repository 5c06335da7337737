//! Bitmaps of changed blocks, and their directory. The content of the image does not depend on them, but QEMU refuses an
//! image whose directory or bitmap tables are invalid.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use crate::bitmap::{Bitmap, DirtyExtents};
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::formats::fields::array;
use crate::storage::HostFile;

/// The header extension that describes the directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Directory {
    /// Offset of the extension.
    pub stated_at: u64,
    count: u32,
    reserved: u32,
    size: u64,
    offset: u64,
}

impl Directory {
    /// Returns the offset and the length of the directory in bytes.
    pub fn place(&self) -> (u64, u64) {
        (self.offset, self.size)
    }

    /// Parses the extension. Returns `None` if it does not have the right size.
    pub fn parse(data: &[u8], stated_at: u64) -> Option<Self> {
        let data: &[u8; 24] = data.try_into().ok()?;
        Some(Self {
            stated_at,
            count: u32::from_be_bytes(array(data, 0)),
            reserved: u32::from_be_bytes(array(data, 4)),
            size: u64::from_be_bytes(array(data, 8)),
            offset: u64::from_be_bytes(array(data, 16)),
        })
    }
}

/// Fails unless the directory of an image of `size` bytes and its tables are valid.
pub(super) fn check(file: &HostFile, directory: &Directory, size: u64, cluster: u64) -> Result<()> {
    check_entries(file, directory, size, cluster, &mut |bitmap, _| {
        if bitmap.is_in_use() { Ok(()) } else { bitmap.check_table(file, cluster) }
    })
}

/// The table of a bitmap.
pub(super) struct BitmapTable {
    /// Offset of the entry of the directory.
    pub stated_at: u64,
    pub offset: u64,
    /// Number of entries.
    pub entries: u64,
}

/// Returns the place of the directory, and the tables of all bitmaps. Fails unless the directory is valid. The tables need not
/// be.
pub(super) fn tables(
    file: &HostFile,
    directory: &Directory,
    size: u64,
    cluster: u64,
) -> Result<Vec<BitmapTable>> {
    let mut found = Vec::new();
    check_entries(file, directory, size, cluster, &mut |bitmap, stated_at| {
        found.push(BitmapTable {
            stated_at,
            offset: bitmap.table_offset,
            entries: u64::from(bitmap.table_size),
        });
        Ok(())
    })?;
    Ok(found)
}

/// Fails unless the directory of an image of `size` bytes is valid, and `check_table` accepts all bitmaps with the offsets of
/// their entries.
fn check_entries(
    file: &HostFile,
    directory: &Directory,
    size: u64,
    cluster: u64,
    check_table: &mut dyn FnMut(&Entry, u64) -> Result<()>,
) -> Result<()> {
    let broken = |rule: &str| file.corrupt(format!("bitmaps: {rule}")).at(directory.stated_at);
    if directory.reserved != 0 {
        return Err(broken("reserved field is not zero"));
    }
    if directory.count == 0 || directory.count > MAX_BITMAPS {
        return Err(broken("number is not between 1 and 65535"));
    }
    if !directory.offset.is_multiple_of(cluster) {
        return Err(broken("directory is not aligned to a cluster"));
    }
    if directory.size == 0 || directory.size > MAX_DIRECTORY {
        return Err(broken("directory is not between 1 byte and 64 MiB long"));
    }
    let end = directory.offset.checked_add(directory.size).filter(|end| *end <= file.size());
    let Some(end) = end else {
        return Err(broken("directory lies past the end of the file"));
    };
    // Names take up to 64 MiB, their hashes up to 512 KiB.
    let (state, mut names) = (RandomState::new(), HashSet::new());
    let mut tables = MAX_TABLES;
    let mut offset = directory.offset;
    for _ in 0..directory.count {
        let broken = |rule: &str| file.corrupt(format!("bitmap: {rule}")).at(offset);
        let bitmap = Entry::read(file, offset, end)?;
        bitmap.check(size, cluster).map_err(broken)?;
        let name = bitmap.name.split(|byte| *byte == 0).next().unwrap_or_default();
        if !names.insert(state.hash_one(name)) {
            return Err(broken("name is not the only one"));
        }
        if !bitmap.is_in_use() {
            tables = tables
                .checked_sub(u64::from(bitmap.table_size) * 8)
                .ok_or_else(|| broken("tables take more than 32 MiB"))?;
        }
        check_table(&bitmap, offset)?;
        offset = bitmap.end;
    }
    if offset == end { Ok(()) } else { Err(broken("directory has more entries than it says")) }
}

/// Returns the bitmaps of a directory that was checked.
pub(super) fn list(file: &HostFile, directory: Option<&Directory>) -> Result<Vec<Bitmap>> {
    let mut found = Vec::new();
    walk(file, directory, &mut |entry| {
        found.push(entry.describe());
        false
    })?;
    Ok(found)
}

/// Returns the extents of an image of `size` bytes that the bitmap with this name marks. Returns `None` if there is no such
/// bitmap.
pub(super) fn extents(
    file: &HostFile,
    directory: Option<&Directory>,
    name: &[u8],
    size: u64,
    cluster: u64,
) -> Result<Option<Vec<Range<u64>>>> {
    let entry = walk(file, directory, &mut |entry| entry.name == name)?;
    let Some(entry) = entry else { return Ok(None) };
    if entry.is_in_use() {
        let reason = format!(
            "bitmap {} is in use: the program that wrote to the image did not close it, so that changes are missing",
            excerpt(name)
        );
        return Err(file.error(ErrorKind::Argument, reason));
    }
    let mut extents = DirtyExtents::new(size);
    entry.read_bits(file, size, cluster, &mut extents)?;
    Ok(Some(extents.into_list()))
}

/// Returns the first entry of a directory that `is_wanted`.
fn walk(
    file: &HostFile,
    directory: Option<&Directory>,
    is_wanted: &mut dyn FnMut(&Entry) -> bool,
) -> Result<Option<Entry>> {
    let Some(directory) = directory else { return Ok(None) };
    let (mut offset, end) = (directory.offset, directory.offset.saturating_add(directory.size));
    for _ in 0..directory.count {
        let entry = Entry::read(file, offset, end)?;
        if is_wanted(&entry) {
            return Ok(Some(entry));
        }
        offset = entry.end;
    }
    Ok(None)
}

/// An entry of the directory.
struct Entry {
    table_offset: u64,
    table_size: u32,
    flags: u32,
    kind: u8,
    granularity_bits: u8,
    name: Vec<u8>,
    end: u64,
}

impl Entry {
    /// Reads the entry at `offset` of a directory that ends at `end`.
    fn read(file: &HostFile, offset: u64, end: u64) -> Result<Self> {
        let cut = || file.corrupt("bitmap: directory ends within an entry").at(offset);
        if end - offset < HEAD_SIZE {
            return Err(cut());
        }
        let mut head = [0; HEAD_SIZE as usize];
        file.read_exact_at(&mut head, offset)?;
        let name_size = u16::from_be_bytes(array(&head, 18));
        if u32::from_be_bytes(array(&head, 20)) != 0 {
            return Err(file.corrupt("bitmap: extra data is not known").at(offset));
        }
        let length = (HEAD_SIZE + u64::from(name_size)).next_multiple_of(8);
        if length > end - offset {
            return Err(cut());
        }
        let mut name = vec![0; usize::from(name_size)];
        file.read_exact_at(&mut name, offset + HEAD_SIZE)?;
        Ok(Self {
            table_offset: u64::from_be_bytes(array(&head, 0)),
            table_size: u32::from_be_bytes(array(&head, 8)),
            flags: u32::from_be_bytes(array(&head, 12)),
            kind: head[16],
            granularity_bits: head[17],
            name,
            end: offset + length,
        })
    }

    /// Returns whether the bitmap was not closed. Its table is not read in that case.
    fn is_in_use(&self) -> bool {
        self.flags & IN_USE != 0
    }

    fn describe(&self) -> Bitmap {
        Bitmap {
            name: self.name.clone(),
            granularity: 1 << self.granularity_bits,
            is_enabled: self.flags & AUTO != 0,
            is_in_use: self.is_in_use(),
        }
    }

    /// Appends the extents of set bits. The table was checked.
    fn read_bits(
        &self,
        file: &HostFile,
        size: u64,
        cluster: u64,
        extents: &mut DirtyExtents,
    ) -> Result<()> {
        let too_many = || file.error(ErrorKind::Argument, "bitmap has more than 16 Mi extents");
        let bit = 1_u64 << self.granularity_bits;
        let mut table = vec![0; self.table_size as usize * 8];
        file.read_exact_at(&mut table, self.table_offset)?;
        let mut bits = vec![0; cluster as usize];
        // A cluster of bits of a large granularity may reach far past the end of the image.
        let span = bit.saturating_mul(cluster * 8);
        for (index, entry) in table.as_chunks().0.iter().enumerate() {
            let start = span.saturating_mul(index as u64);
            let entry = u64::from_be_bytes(*entry);
            let host = entry & ENTRY_OFFSET;
            if start >= size {
                break;
            }
            if host == 0 {
                if entry & ENTRY_ALL_ONES != 0 {
                    extents.push(start..start.saturating_add(span)).ok_or_else(too_many)?;
                }
                continue;
            }
            file.read_exact_at(&mut bits, host)?;
            for (index, byte) in bits.iter().enumerate().filter(|(_, byte)| **byte != 0) {
                let at = |number: u64| {
                    start.saturating_add((index as u64 * 8 + number).saturating_mul(bit))
                };
                if *byte == u8::MAX {
                    extents.push(at(0)..at(8)).ok_or_else(too_many)?;
                    continue;
                }
                for number in (0..8).filter(|number| byte & (1 << number) != 0) {
                    extents.push(at(number)..at(number + 1)).ok_or_else(too_many)?;
                }
            }
        }
        Ok(())
    }

    fn check(&self, size: u64, cluster: u64) -> Result<(), &'static str> {
        if self.kind != DIRTY_TRACKING {
            return Err("type is not known");
        }
        if self.flags & !(IN_USE | AUTO) != 0 {
            return Err("reserved flags are set");
        }
        if !(MIN_GRANULARITY..=MAX_GRANULARITY).contains(&self.granularity_bits) {
            return Err("granularity is not between 9 and 31 bits");
        }
        if self.name.is_empty() || self.name.len() > MAX_NAME {
            return Err("name is not between 1 and 1023 bytes long");
        }
        if self.table_offset == 0 || !self.table_offset.is_multiple_of(cluster) {
            return Err("table is missing, or not aligned to a cluster");
        }
        let stored = u64::from(self.table_size) * cluster;
        if self.table_size == 0 || self.table_size > MAX_TABLE || stored > MAX_STORED {
            return Err("table is empty, or too large");
        }
        let words = size.div_ceil(1 << self.granularity_bits).div_ceil(64);
        let needed = (words * 8).div_ceil(cluster);
        if !self.is_in_use() && u64::from(self.table_size) != needed {
            return Err("table does not have the size that the virtual size asks for");
        }
        Ok(())
    }

    fn check_table(&self, file: &HostFile, cluster: u64) -> Result<()> {
        let broken = |offset| -> Error {
            file.corrupt("bitmap: entry of its table breaks the rules").at(offset)
        };
        let end = self.table_offset.checked_add(u64::from(self.table_size) * 8);
        let Some(end) = end.filter(|end| *end <= file.size()) else {
            let reason = "bitmap: table lies past the end of the file";
            return Err(file.corrupt(reason).at(self.table_offset));
        };
        let mut window = vec![0; WINDOW.min((end - self.table_offset) as usize)];
        let mut offset = self.table_offset;
        while offset < end {
            let window = &mut window[..WINDOW.min((end - offset) as usize)];
            file.read_exact_at(window, offset)?;
            for (index, entry) in window.as_chunks().0.iter().enumerate() {
                if entry_cluster(u64::from_be_bytes(*entry), cluster).is_err() {
                    return Err(broken(offset + index as u64 * 8));
                }
            }
            offset += window.len() as u64;
        }
        Ok(())
    }
}

const HEAD_SIZE: u64 = 24;
const DIRTY_TRACKING: u8 = 1;

const IN_USE: u32 = 1 << 0;
const AUTO: u32 = 1 << 1;

/// Returns the cluster that an entry of a bitmap table names, or 0 if it names none. Fails if the entry is not valid.
pub(super) fn entry_cluster(entry: u64, cluster: u64) -> Result<u64, &'static str> {
    let host = entry & ENTRY_OFFSET;
    if entry & ENTRY_RESERVED != 0 {
        return Err("reserved bits are set");
    }
    if !host.is_multiple_of(cluster) || (host != 0 && entry & ENTRY_ALL_ONES != 0) {
        return Err("is neither a place nor a value");
    }
    Ok(host)
}

const ENTRY_ALL_ONES: u64 = 1;
const ENTRY_RESERVED: u64 = 0xff00_0000_0000_01fe;
const ENTRY_OFFSET: u64 = 0x00ff_ffff_ffff_fe00;

/// Maximum number of bitmaps of changed blocks, as in QEMU.
/// Limit in bitmaps.
const MAX_BITMAPS: u32 = 65_535;

/// Maximum size of the directory of bitmaps, as in QEMU.
/// Limit in bytes.
const MAX_DIRECTORY: u64 = 65_535 * 1024;

/// Limits of QEMU.
const MAX_NAME: usize = 1023;
const MIN_GRANULARITY: u8 = 9;
const MAX_GRANULARITY: u8 = 31;
const MAX_TABLE: u32 = 0x800_0000;
const MAX_STORED: u64 = 0x2000_0000;

/// Maximum size of the tables of all bitmaps. The table of a disk of 64 TiB takes 16 KiB. Overlapping tables could
/// otherwise take hours.
/// Limit in bytes.
const MAX_TABLES: u64 = 32 << 20;

const WINDOW: usize = 64 << 10;

#[cfg(test)]
mod tests;
