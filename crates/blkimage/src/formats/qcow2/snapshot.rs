//! Internal snapshots: a table of entries of variable length, searched for one snapshot or listed.

use std::time::Duration;

use super::header::{Header, SECTOR, SnapshotTable, check_empty};
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::formats::fields::array;
use crate::formats::two_level::{L1Table, Rules};
use crate::snapshot::Snapshot;
use crate::storage::HostFile;

/// Fails unless the snapshot table is valid. Called even if no snapshot is requested, because QEMU
/// reads the table to open the image.
pub(super) fn check(file: &HostFile, header: &Header) -> Result<()> {
    walk(file, header, &mut |_| ()).map(|_| ())
}

/// A snapshot as its entry in the table describes it.
pub(super) struct Listed {
    /// Offset of the entry.
    pub offset: u64,
    pub l1: L1Table,
    /// Length of the extra data in bytes.
    pub extra_length: u32,
}

/// Returns all snapshots, and the end of their table. Fails unless the table is valid.
pub(super) fn tables(file: &HostFile, header: &Header) -> Result<(Vec<Listed>, u64)> {
    let mut found = Vec::new();
    let end = walk(file, header, &mut |entry| {
        let Entry { offset, l1, extra_length, .. } = *entry;
        found.push(Listed { offset, l1, extra_length });
    })?;
    Ok((found, end))
}

/// Passes every entry of the snapshot table to `visit`, and returns the end of the last one. Fails unless the table is valid.
fn walk(file: &HostFile, header: &Header, visit: &mut dyn FnMut(&Entry)) -> Result<u64> {
    let SnapshotTable { offset: start, count } = header.snapshots;
    if count > MAX_SNAPSHOTS {
        return Err(file.corrupt("more than 65536 snapshots").at(60));
    }
    let is_aligned = header.geometry().is_aligned(start);
    if !is_aligned || start > i64::MAX as u64 - u64::from(count) * HEAD_SIZE {
        return Err(file.corrupt("snapshot table is not aligned to a cluster").at(64));
    }
    let mut end = start;
    for _ in 0..count {
        let entry = Entry::read(file, end.next_multiple_of(8))?;
        end = entry.end;
        if end.next_multiple_of(8) - start > MAX_TABLE {
            return Err(file.corrupt("snapshot table is larger than 64 MiB").at(entry.offset));
        }
        visit(&entry);
    }
    Ok(end)
}

/// Returns the virtual size and L1 table of the snapshot with the id `wanted`, or else of the first one
/// with that name, as in QEMU.
pub(super) fn find(file: &HostFile, header: &Header, wanted: &str) -> Result<(u64, L1Table)> {
    let table = header.snapshots;
    let mut offset = table.offset;
    let mut by_name = None;
    let mut seen = Vec::new();
    for _ in 0..table.count {
        let entry = Entry::read(file, offset)?;
        offset = entry.end.next_multiple_of(8);
        let id = entry.read_id(file)?;
        if id == wanted.as_bytes() {
            return entry.view(file, header);
        }
        if by_name.is_none() || seen.len() < MAX_LISTED {
            let name = entry.read_name(file)?;
            if seen.len() < MAX_LISTED {
                seen.push(format!("{} ({})", excerpt(&id), excerpt(&name)));
            }
            if by_name.is_none() && name == wanted.as_bytes() {
                by_name = Some(entry);
            }
        }
    }
    match by_name {
        Some(entry) => entry.view(file, header),
        None => Err(not_found(file, wanted, &seen, table.count)),
    }
}

/// Returns all snapshots of an image whose active state has `size` bytes. [`check`] has limited their number and size.
pub(super) fn list(file: &HostFile, table: SnapshotTable, size: u64) -> Result<Vec<Snapshot>> {
    let mut offset = table.offset;
    let mut found = Vec::new();
    for _ in 0..table.count {
        let entry = Entry::read(file, offset)?;
        offset = entry.end.next_multiple_of(8);
        found.push(entry.describe(file, size)?);
    }
    Ok(found)
}

/// One entry. Its end is below 2^63.
struct Entry {
    offset: u64,
    end: u64,
    l1: L1Table,
    id_length: u16,
    name_length: u16,
    created: Duration,
    /// Size of the state of the virtual machine in entries without extra data.
    vm_state_size: u32,
    extra_length: u32,
}

impl Entry {
    fn read(file: &HostFile, offset: u64) -> Result<Self> {
        let mut head = [0; HEAD_SIZE as usize];
        check_range(file, offset, HEAD_SIZE)?;
        file.read_exact_at(&mut head, offset)?;
        let entries = u64::from(u32::from_be_bytes(array(&head, 8)));
        let mut entry = Self {
            offset,
            end: 0,
            l1: L1Table { offset: u64::from_be_bytes(array(&head, 0)), entries },
            id_length: u16::from_be_bytes(array(&head, 12)),
            name_length: u16::from_be_bytes(array(&head, 14)),
            created: Duration::from_secs(u32::from_be_bytes(array(&head, 16)).into())
                + Duration::from_nanos(u32::from_be_bytes(array(&head, 20)).into()),
            vm_state_size: u32::from_be_bytes(array(&head, 32)),
            extra_length: u32::from_be_bytes(array(&head, 36)),
        };
        if entry.extra_length > MAX_EXTRA {
            let reason = "snapshot has more than 1024 bytes of extra data";
            return Err(file.corrupt(reason).at(offset));
        }
        let length = HEAD_SIZE
            + u64::from(entry.extra_length)
            + u64::from(entry.id_length)
            + u64::from(entry.name_length);
        check_range(file, offset, length)?;
        entry.end = offset + length;
        Ok(entry)
    }

    fn read_id(&self, file: &HostFile) -> Result<Vec<u8>> {
        let offset = self.offset + HEAD_SIZE + u64::from(self.extra_length);
        read_text(file, offset, self.id_length)
    }

    fn read_name(&self, file: &HostFile) -> Result<Vec<u8>> {
        read_text(file, self.end - u64::from(self.name_length), self.name_length)
    }

    /// Reads the extra data: the size of the state of the virtual machine, and the virtual size. Entries of old images
    /// omit the second or both.
    fn read_sizes(&self, file: &HostFile) -> Result<(u64, Option<u64>)> {
        let word = |at: u64| {
            if u64::from(self.extra_length) < at + 8 {
                return Ok(None);
            }
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, self.offset + HEAD_SIZE + at)?;
            Ok(Some(u64::from_be_bytes(bytes)))
        };
        let vm_state = word(0)?.unwrap_or(self.vm_state_size.into());
        Ok((vm_state, word(8)?.map(|size| size / SECTOR * SECTOR)))
    }

    fn describe(&self, file: &HostFile, active_size: u64) -> Result<Snapshot> {
        let (vm_state_size, size) = self.read_sizes(file)?;
        Ok(Snapshot {
            id: self.read_id(file)?,
            name: self.read_name(file)?,
            created: self.created,
            virtual_size: size.unwrap_or(active_size),
            vm_state_size,
        })
    }

    /// Returns the virtual size and L1 table of the snapshot. If the entry has no size, it is the size of the image,
    /// and any part that the table does not cover is unallocated.
    fn view(&self, file: &HostFile, header: &Header) -> Result<(u64, L1Table)> {
        let (vm_state, size) = self.read_sizes(file)?;
        // The state of a virtual machine is stored after the content.
        if vm_state == 0 {
            check_empty(file, self.l1, size.unwrap_or(header.size))?;
        }
        let Some(size) = size else {
            let covered = self.l1.entries.saturating_mul(1 << header.geometry().l1_span_bits());
            header.check_l1(file, self.l1, header.size.min(covered), self.offset + 8)?;
            return Ok((header.size, self.l1));
        };
        header.check_l1(file, self.l1, size, self.offset + 8)?;
        Ok((size, self.l1))
    }
}

fn check_range(file: &HostFile, offset: u64, length: u64) -> Result<()> {
    if offset.checked_add(length).is_some_and(|end| end <= file.size()) {
        return Ok(());
    }
    Err(file.corrupt("snapshot table lies past the end of the file").at(offset))
}

fn read_text(file: &HostFile, offset: u64, length: u16) -> Result<Vec<u8>> {
    let mut text = vec![0; usize::from(length)];
    file.read_exact_at(&mut text, offset)?;
    Ok(text)
}

fn not_found(file: &HostFile, wanted: &str, seen: &[String], count: u32) -> Error {
    let wanted = excerpt(wanted.as_bytes());
    let reason = match count as usize {
        0 => format!("has no snapshot \"{wanted}\", and no other"),
        count if count > seen.len() => {
            let more = count - seen.len();
            format!("has no snapshot \"{wanted}\"; it has {} and {more} more", seen.join(", "))
        }
        _ => format!("has no snapshot \"{wanted}\"; it has {}", seen.join(", ")),
    };
    file.error(ErrorKind::Snapshot, reason)
}

const HEAD_SIZE: u64 = 40;

/// Maximum number of snapshots of an image, as in QEMU.
/// Limit in snapshots.
const MAX_SNAPSHOTS: u32 = 65536;

/// Maximum size of the extra data of a snapshot, as in QEMU.
/// Limit in bytes.
const MAX_EXTRA: u32 = 1024;

/// Maximum size of the snapshot table, as in QEMU. `blkhash info` keeps one such table.
/// Limit in bytes.
const MAX_TABLE: u64 = 64 << 20;

/// Maximum number of snapshots that an error message lists.
/// Limit in snapshots.
const MAX_LISTED: usize = 16;
