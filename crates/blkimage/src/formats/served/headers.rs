//! What headers name, and what they ask for that QEMU reads wrongly or not at all.
//!
//! QEMU reads zeros where a cluster lies past the end of its file. Formats whose driver does not look
//! for that have their tables walked here, once, before QEMU sees them.

use super::descriptor::{Descriptor, DiskExtent};
use super::fields::{Budget, Entry, Head, check_inside, for_each_entry};
use super::vmdk;
use crate::error::{Error, ErrorKind, Result};
use crate::probe::Format;
use crate::storage::HostFile;

/// The files that an image names.
#[derive(Default)]
pub(crate) struct Named {
    pub backing: Option<Backing>,
    pub descriptor: Option<Descriptor>,
    pub vpc: Option<VpcSize>,
}

/// The two sizes that a vpc image states, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VpcSize {
    pub current: u64,
    /// The product of cylinders, heads and sectors.
    pub geometry: u64,
    /// QEMU made it: without `force_size`, in whole cylinders.
    pub is_rounded: bool,
}

impl VpcSize {
    fn of(footer: &Head<'_>) -> Self {
        let [heads, sectors] = [footer.bytes()[58], footer.bytes()[59]].map(u64::from);
        let cylinders = u64::from(footer.be32(56) >> 16);
        Self {
            current: footer.be64(48),
            geometry: cylinders * heads * sectors * 512,
            is_rounded: footer.bytes()[28..32] == *b"qemu",
        }
    }

    /// What is worth a warning where QEMU reads `size` bytes.
    pub fn doubt(&self, size: u64) -> Option<String> {
        let Self { current, geometry, is_rounded } = *self;
        if size != current {
            return Some(format!(
                "QEMU reads the {size} bytes of its cylinders, and not the {current} bytes that its \
                 header states: the checksum is that of {size} bytes"
            ));
        }
        (is_rounded && size == geometry).then(|| {
            format!(
                "its size of {size} bytes was rounded up to whole cylinders unless it was made with \
                 force_size=on: the disk that it was made of may be smaller and have another checksum"
            )
        })
    }
}

impl Named {
    /// The files that a descriptor names.
    pub fn extents(&self) -> &[DiskExtent] {
        self.descriptor.as_ref().map_or(&[], |descriptor| &descriptor.extents)
    }
}

/// A backing file as an image states it.
pub(crate) struct Backing {
    pub name: Vec<u8>,
    /// The format, where the image tells.
    pub format: Option<Format>,
}

impl Backing {
    /// The parent of a VMware disk, which is always another one.
    pub fn vmdk(name: Vec<u8>) -> Self {
        Self { name, format: Some(Format::Vmdk) }
    }
}

/// Looks at the header of an image before QEMU does.
pub(crate) fn examine(file: &HostFile, format: Format) -> Result<Named> {
    match format {
        Format::Vmdk => vmdk::examine(file),
        Format::Qed => qed(file),
        Format::Qcow1 => qcow1(file),
        Format::Vdi => vdi(file).map(|()| Named::default()),
        Format::Parallels => parallels(file).map(|()| Named::default()),
        Format::Vpc => vpc(file),
        Format::Bochs => bochs(file).map(|()| Named::default()),
        Format::Vhdx | Format::Luks => whole_sectors(file).map(|()| Named::default()),
        Format::Raw | Format::Qcow2 | Format::Cloop | Format::Dmg => Ok(Named::default()),
    }
}

/// The error for a file that is not of the format that it is said to be.
pub(super) fn not_a(file: &HostFile, format: Format) -> Error {
    file.error(ErrorKind::Format, format!("is not a {format} image"))
}

fn qed(file: &HostFile) -> Result<Named> {
    let head = read_head(file, Format::Qed, b"QED\0", 0, 64)?;
    let (cluster, table, features) = (head.le32(4), head.le32(8), head.le64(16));
    let is_sane = cluster.is_power_of_two()
        && (4096..=64 << 20).contains(&cluster)
        && table.is_power_of_two()
        && table <= 16;
    if !is_sane {
        return Err(file.corrupt("has impossible sizes in its header"));
    }
    let size = head.le64(48);
    let cluster = u64::from(cluster);
    let entries = cluster * u64::from(table) / 8;
    let mut budget = Budget::new(file);
    for_each_entry(file, head.le64(40), entries, Entry::Le64, |table, offset| {
        if offset == 0 {
            return Ok(());
        }
        budget.take(entries * 8)?;
        for_each_entry(file, offset, entries, Entry::Le64, |index, offset| {
            // 0 is a cluster that is not there, 1 one of zeros.
            if offset <= 1 {
                return Ok(());
            }
            let guest = (table * entries + index).saturating_mul(cluster);
            check_inside(file, offset, cluster.min(size.saturating_sub(guest)), "cluster")
        })
    })?;
    if features & QED_BACKING == 0 {
        return Ok(Named::default());
    }
    let name = head.name("backing file", u64::from(head.le32(56)), head.le32(60))?;
    let format = (features & QED_BACKING_RAW != 0).then_some(Format::Raw);
    Ok(Named { backing: Some(Backing { name, format }), ..Named::default() })
}

fn qcow1(file: &HostFile) -> Result<Named> {
    let head = read_head(file, Format::Qcow1, b"QFI\xfb\0\0\0\x01", 0, 48)?;
    if head.be32(36) != 0 {
        return Err(file.error(ErrorKind::Unsupported, "is encrypted, which is not read"));
    }
    let [cluster_bits, l2_bits] = [head.bytes()[32], head.bytes()[33]];
    let size = head.be64(24);
    if !(9..=16).contains(&cluster_bits) || !(6..=13).contains(&l2_bits) || size >= 1 << 62 {
        return Err(file.corrupt("has impossible sizes in its header"));
    }
    let (cluster, entries) = (1_u64 << cluster_bits, 1_u64 << l2_bits);
    let mut budget = Budget::new(file);
    let tables = size.div_ceil(cluster * entries);
    for_each_entry(file, head.be64(40), tables, Entry::Be64, |table, offset| {
        if offset == 0 {
            return Ok(());
        }
        budget.take(entries * 8)?;
        for_each_entry(file, offset, entries, Entry::Be64, |index, entry| {
            if entry == 0 {
                return Ok(());
            }
            let guest = (table * entries + index).saturating_mul(cluster);
            if entry >> 63 == 0 {
                return check_inside(
                    file,
                    entry,
                    cluster.min(size.saturating_sub(guest)),
                    "cluster",
                );
            }
            // Raw deflate has no checksum: bytes that are not there would go unnoticed.
            let length = entry >> (63 - cluster_bits) & (cluster - 1);
            check_inside(file, entry & ((1 << (63 - cluster_bits)) - 1), length, "cluster")
        })
    })?;
    let offset = head.be64(8);
    if offset == 0 {
        return Ok(Named::default());
    }
    let name = head.name("backing file", offset, head.be32(16))?;
    Ok(Named { backing: Some(Backing { name, format: None }), ..Named::default() })
}

fn vdi(file: &HostFile) -> Result<()> {
    let head = read_head(file, Format::Vdi, b"\x7f\x10\xda\xbe", 64, 512)?;
    if !matches!(head.le32(0x4c), VDI_DYNAMIC | VDI_STATIC) {
        let reason = "is a difference to another disk, which is not read";
        return Err(file.error(ErrorKind::Unsupported, reason));
    }
    let (map, data) = (u64::from(head.le32(0x154)), u64::from(head.le32(0x158)));
    let (size, block) = (head.le64(0x170), u64::from(head.le32(0x178)));
    for_each_entry(file, map, u64::from(head.le32(0x180)), Entry::Le32, |index, entry| {
        if entry >= VDI_DISCARDED {
            return Ok(());
        }
        let length = block.min(size.saturating_sub(index * block));
        check_inside(file, data + entry * block, length, "block")
    })
}

fn parallels(file: &HostFile) -> Result<()> {
    let head = Head::read(file, 0, 64)?;
    let unit = if head.starts_with(b"WithoutFreeSpace") {
        1
    } else if head.starts_with(b"WithouFreSpacExt") {
        u64::from(head.le32(28))
    } else {
        return Err(not_a(file, Format::Parallels));
    };
    let cluster = u64::from(head.le32(28));
    let size = if unit == 1 { head.le64(36) & 0xffff_ffff } else { head.le64(36) };
    let entries = u64::from(head.le32(32));
    // Past the end of the table QEMU reads zeros, for ever if the size says so.
    if size > entries * cluster {
        return Err(file.corrupt("is larger than its table").at(36));
    }
    for_each_entry(file, 64, entries, Entry::Le32, |index, entry| {
        if entry == 0 {
            return Ok(());
        }
        let sectors = cluster.min(size.saturating_sub(index * cluster));
        check_inside(file, entry.saturating_mul(unit * 512), sectors * 512, "cluster")
    })
}

/// QEMU reads the footer at the start, where only disks that grow have a copy, or at the end.
fn vpc(file: &HostFile) -> Result<Named> {
    if file.size() < VPC_FOOTER as u64 {
        return Err(not_a(file, Format::Vpc));
    }
    let mut footer = Head::read(file, 0, VPC_FOOTER)?;
    if !footer.starts_with(b"conectix") {
        footer = Head::read(file, file.size() - VPC_FOOTER as u64, VPC_FOOTER)?;
    }
    if footer.bytes()[1..].starts_with(b"conectix") {
        let reason = "is a vpc image of before 2004, which is not read: if it is none, use -f raw";
        return Err(file.error(ErrorKind::Unsupported, reason));
    }
    if !footer.starts_with(b"conectix") {
        return Err(not_a(file, Format::Vpc));
    }
    match footer.be32(60) {
        VPC_FIXED | VPC_DYNAMIC => {
            whole_sectors(file)?;
            Ok(Named { vpc: Some(VpcSize::of(&footer)), ..Named::default() })
        }
        VPC_DIFFERENCING => {
            let reason = "is a difference to another disk, which is not read";
            Err(file.error(ErrorKind::Unsupported, reason))
        }
        other => Err(file.corrupt(format!("has the unknown disk type {other}"))),
    }
}

/// An extent may end where nothing was written any more: its bits tell which sectors are there.
fn bochs(file: &HostFile) -> Result<()> {
    let head = read_head(file, Format::Bochs, b"Bochs Virtual HD Image", 0, 512)?;
    let (start, count) = (u64::from(head.le32(68)), u64::from(head.le32(72)));
    let (bitmap, extent) = (u64::from(head.le32(76)), u64::from(head.le32(80)));
    if bitmap > MAX_BITMAP {
        return Err(file.corrupt("has impossible sizes in its header"));
    }
    let round_up = |bytes: u64| bytes.div_ceil(512) * 512;
    let stride = round_up(bitmap) + round_up(extent);
    let data = start + count * 4;
    whole_sectors(file)?;
    for_each_entry(file, start, count, Entry::Le32, |_, entry| {
        if entry == u64::from(u32::MAX) {
            return Ok(());
        }
        // An entry can lead past 2^64: that is past the end of the file, too.
        let offset = data.saturating_add(stride.saturating_mul(entry));
        if offset.saturating_add(stride) <= file.size() {
            return Ok(());
        }
        check_inside(file, offset, round_up(bitmap), "bitmap")?;
        let mut bits = vec![0; bitmap as usize];
        file.read_exact_at(&mut bits, offset)?;
        let Some(byte) = bits.iter().rposition(|byte| *byte != 0) else { return Ok(()) };
        let sectors = byte as u64 * 8 + u64::from(8 - bits[byte].leading_zeros());
        check_inside(file, offset + round_up(bitmap), sectors.min(extent / 512) * 512, "sector")
    })
}

/// QEMU rounds up to sectors, and reads zeros where the last one is cut.
fn whole_sectors(file: &HostFile) -> Result<()> {
    if file.size().is_multiple_of(512) {
        return Ok(());
    }
    let reason = "ends within a sector: it was probably cut off";
    Err(file.corrupt(reason).at(file.size()))
}

fn read_head<'a>(
    file: &'a HostFile,
    format: Format,
    magic: &[u8],
    at: usize,
    length: usize,
) -> Result<Head<'a>> {
    if file.size() < length as u64 {
        return Err(not_a(file, format));
    }
    let head = Head::read(file, 0, length)?;
    if head.bytes()[at..].starts_with(magic) { Ok(head) } else { Err(not_a(file, format)) }
}

const QED_BACKING: u64 = 1 << 0;
const QED_BACKING_RAW: u64 = 1 << 2;

const VDI_DYNAMIC: u32 = 1;
const VDI_STATIC: u32 = 2;
/// Blocks from here on have no data: they were discarded, or never written.
const VDI_DISCARDED: u64 = 0xffff_fffe;

/// Bits for extents of 256 MiB: Bochs makes them of a megabyte or so.
const MAX_BITMAP: u64 = 64 << 10;

const VPC_FOOTER: usize = 512;
const VPC_FIXED: u32 = 2;
const VPC_DYNAMIC: u32 = 3;
const VPC_DIFFERENCING: u32 = 4;

#[cfg(test)]
mod tests;
