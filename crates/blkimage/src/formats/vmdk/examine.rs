//! Checks of VMware disks before QEMU reads them.

use super::descriptor::{Descriptor, DiskExtent, DiskExtentKind, Flaw, MAX_DESCRIPTOR};
use super::{COWD, KDMV, SECTOR};
use crate::error::{ErrorKind, Result};
use crate::formats::fields::{Budget, Entry, Head, check_inside, for_each_entry};
use crate::formats::named::{Backing, Named, not_a};
use crate::probe::Format;
use crate::storage::HostFile;

/// Checks a disk and returns the files that it names.
pub(in crate::formats) fn examine(file: &HostFile) -> Result<Named> {
    let magic = file.read_head(4)?;
    if magic != KDMV && magic != COWD {
        let descriptor = read_descriptor(file)?;
        let backing = descriptor.parent.clone().map(Backing::vmdk);
        return Ok(Named { backing, descriptor: Some(descriptor), ..Named::default() });
    }
    Sparse::read(file)?.check_end(file)?;
    let backing = embedded_parent(file)?.map(Backing::vmdk);
    Ok(Named { backing, ..Named::default() })
}

impl DiskExtent {
    /// Fails unless `file` matches the descriptor.
    pub fn check(&self, file: &HostFile) -> Result<()> {
        match self.kind {
            DiskExtentKind::Flat { start } => {
                check_inside(file, start * SECTOR, self.sectors * SECTOR, "part of the disk")
            }
            DiskExtentKind::Zero => Ok(()),
            DiskExtentKind::Sparse | DiskExtentKind::VmfsSparse | DiskExtentKind::SeSparse => {
                let sparse = Sparse::read(file)?;
                if sparse.capacity != self.sectors {
                    return Err(file.corrupt("has another size than its descriptor says"));
                }
                sparse.check_end(file)
            }
        }
    }
}

fn read_descriptor(file: &HostFile) -> Result<Descriptor> {
    if file.size() > MAX_DESCRIPTOR as u64 {
        return Err(not_a(file, Format::Vmdk));
    }
    let text = file.read_head(MAX_DESCRIPTOR)?;
    if crate::probe::probe(&text) != Some(Format::Vmdk) {
        return Err(not_a(file, Format::Vmdk));
    }
    let descriptor = Descriptor::parse(&text).map_err(|flaw| match flaw {
        Flaw::Invalid(reason) => file.corrupt(reason),
        Flaw::Unsupported(reason) => file.error(ErrorKind::Unsupported, reason),
    })?;
    // QEMU omits extents of zeros, and reads zeros where extents of ESXi are cut off.
    let is_known = |extent: &DiskExtent| {
        !matches!(extent.kind, DiskExtentKind::Zero | DiskExtentKind::SeSparse)
    };
    if !QEMU_TYPES.contains(&&*descriptor.create_type) || !descriptor.extents.iter().all(is_known) {
        let reason = "is a vmdk image of a type that qemu-nbd does not read";
        return Err(file.error(ErrorKind::Unsupported, reason));
    }
    Ok(descriptor)
}

/// Returns the parent that the text inside a sparse file names. Reads the text where QEMU reads it, and
/// fails if the text at the place recorded in the header names another parent.
fn embedded_parent(file: &HostFile) -> Result<Option<Vec<u8>>> {
    let head = Head::read(file, 0, HEADER_SIZE)?;
    let here = parent_at(file, SECTOR)?;
    if head.starts_with(KDMV) {
        let there = head.le64(28);
        let is_elsewhere = there > 1 && there < file.size() / SECTOR;
        if is_elsewhere && parent_at(file, there * SECTOR)? != here {
            return Err(file.error(
                ErrorKind::Unsupported,
                "names its parent at an unusual place, which is not read",
            ));
        }
    }
    Ok(here)
}

fn parent_at(file: &HostFile, offset: u64) -> Result<Option<Vec<u8>>> {
    let length = EMBEDDED_SIZE.min(file.size().saturating_sub(offset));
    let mut text = vec![0; length as usize];
    file.read_exact_at(&mut text, offset)?;
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let Some(at) = text.windows(PARENT.len()).position(|window| window == PARENT) else {
        return Ok(None);
    };
    let value = text[at + PARENT.len()..].strip_prefix(b"=\"");
    let name = value.and_then(|value| {
        let end = value.iter().position(|byte| *byte == b'"')?;
        Some(value[..end].to_vec())
    });
    let flaw = || file.corrupt("names its parent without quotes").at(offset);
    name.map(Some).ok_or_else(flaw)
}

/// A sparse file. Capacity, grain and directory are in sectors.
struct Sparse {
    capacity: u64,
    grain: u64,
    /// Number of entries in a grain table.
    entries: u64,
    directory: u64,
    /// Whether grains are compressed. Then only the start of a grain is checked here, and QEMU checks
    /// its length on decompression.
    is_compressed: bool,
}

impl Sparse {
    fn read(file: &HostFile) -> Result<Self> {
        let head = Head::read(file, 0, HEADER_SIZE)?;
        let sparse = if head.starts_with(COWD) {
            Self {
                capacity: u64::from(head.le32(12)),
                grain: u64::from(head.le32(16)),
                entries: 4096,
                directory: u64::from(head.le32(20)),
                is_compressed: false,
            }
        } else if head.starts_with(KDMV) {
            if head.le64(12) == 0 {
                let reason = "is a sparse file that names others, which is not read";
                return Err(file.error(ErrorKind::Unsupported, reason));
            }
            let is_at_end = head.le64(56) == u64::MAX;
            let footer = is_at_end.then(|| Self::footer(file)).transpose()?;
            let head = footer.unwrap_or(head);
            Self {
                capacity: head.le64(12),
                grain: head.le64(20),
                entries: u64::from(head.le32(44)),
                directory: head.le64(56),
                is_compressed: head.le32(8) & COMPRESSED != 0,
            }
        } else {
            return Err(not_a(file, Format::Vmdk));
        };
        let Self { capacity, grain, entries, .. } = sparse;
        let is_sane = (1..=MAX_CAPACITY).contains(&capacity)
            && (1..=MAX_GRAIN).contains(&grain)
            && (1..=MAX_ENTRIES).contains(&entries);
        if is_sane { Ok(sparse) } else { Err(file.corrupt("has impossible sizes in its header")) }
    }

    /// Returns the header at the end of a file that was written as a stream.
    fn footer(file: &HostFile) -> Result<Head<'_>> {
        let Some(offset) = file.size().checked_sub(FOOTER_FROM_END) else {
            return Err(not_a(file, Format::Vmdk));
        };
        let footer = Head::read(file, offset, HEADER_SIZE)?;
        if footer.starts_with(KDMV) {
            Ok(footer)
        } else {
            Err(file.corrupt("lacks its end: it was probably cut off").at(offset))
        }
    }

    /// Fails if a grain lies past the end of the file.
    fn check_end(&self, file: &HostFile) -> Result<()> {
        let Self { capacity, grain, entries, directory, is_compressed } = *self;
        let tables = capacity.div_ceil(grain * entries);
        let Some(directory) = directory.checked_mul(SECTOR) else {
            return Err(file.corrupt("has impossible offsets in its header"));
        };
        let mut budget = Budget::new(file);
        for_each_entry(file, directory, tables, Entry::Le32, |table, sector| {
            if sector == 0 {
                return Ok(());
            }
            budget.take(entries * 4)?;
            for_each_entry(file, sector * SECTOR, entries, Entry::Le32, |index, sector| {
                // 0 is an unallocated grain, 1 is a zero grain.
                if sector <= 1 {
                    return Ok(());
                }
                let guest = (table * entries + index) * grain;
                let sectors =
                    if is_compressed { 1 } else { grain.min(capacity.saturating_sub(guest)) };
                check_inside(file, sector * SECTOR, sectors * SECTOR, "part of the disk")
            })
        })
    }
}

const PARENT: &[u8] = b"parentFileNameHint";

const HEADER_SIZE: usize = 512;

/// Maximum size in bytes of the text inside a sparse file that QEMU reads.
const EMBEDDED_SIZE: u64 = 20 * SECTOR;

/// The header at the end is followed by one sector.
const FOOTER_FROM_END: u64 = 2 * SECTOR;

const COMPRESSED: u32 = 1 << 16;

/// Limits of QEMU. Offsets in bytes fit in 63 bits.
const MAX_GRAIN: u64 = 0x20_0000;
const MAX_ENTRIES: u64 = 4096;
const MAX_CAPACITY: u64 = (i64::MAX as u64) / SECTOR;

/// Disk types that QEMU reads. It cannot tell where a disk of ESXi is cut off.
const QEMU_TYPES: [&str; 5] =
    ["monolithicFlat", "twoGbMaxExtentFlat", "twoGbMaxExtentSparse", "vmfs", "vmfsSparse"];
