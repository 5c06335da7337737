//! The boot regions of exFAT: their fields, their rules, and their checksums.

use crate::bytes::{le16_at, le32_at, le64_at, u8_at};
use crate::error::Result;
use crate::fat::clusters::{Heap, Table, Width};
use crate::volume::Volume;

/// Size of a boot sector without the rest of a large sector, in bytes.
pub(super) const SIZE: usize = 512;

/// Number of sectors of a boot region.
pub(super) const SECTORS: u64 = 12;

/// Content of a boot sector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BootSector {
    /// Size of a sector in bytes.
    pub sector_size: u64,
    /// Size of the volume in bytes.
    pub size: u64,
    pub table: Table,
    pub heap: Heap,
    /// First cluster of the root directory.
    pub root: u32,
    pub serial: u32,
    /// Bits for the state of the volume.
    pub flags: u16,
}

/// Returns whether a sector has the name of exFAT where a boot sector has it.
pub(super) fn is_named(bytes: &[u8]) -> bool {
    bytes.get(3..11) == Some(b"EXFAT   ") && bytes.get(SIZE - 2..SIZE) == Some(&[0x55, 0xaa])
}

impl BootSector {
    /// Returns `None` if a field violates a rule.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if !is_named(bytes) || bytes.get(11..64)?.iter().any(|byte| *byte != 0) {
            return None;
        }
        let shift = u8_at(bytes, 0x6c).filter(|shift| (9..=12).contains(shift))?;
        let cluster_shift = u8_at(bytes, 0x6d).filter(|more| *more <= 25 - shift)?;
        let bytes_of = |sectors: u64| sectors.checked_mul(1 << shift);
        let field = |at| le32_at(bytes, at).and_then(|sectors| bytes_of(sectors.into()));
        let (size, count) = (bytes_of(le64_at(bytes, 0x48)?)?, le32_at(bytes, 0x5c)?);
        let flags = le16_at(bytes, 0x6a)?;
        let copies = u8_at(bytes, 0x6e).filter(|copies| matches!(copies, 1 | 2))?;
        let active = if flags & 1 == 1 { copies - 1 } else { 0 };
        let table = Table {
            width: Width::Bits32,
            start: field(0x50)?,
            size: field(0x54)?,
            copies,
            active,
            is_mirrored: false,
        };
        let cluster_size = 1 << (shift + cluster_shift);
        let heap = Heap { start: field(0x58)?, cluster_size, count };
        let root = le32_at(bytes, 0x60)?;
        let is_valid = u8_at(bytes, 0x69) == Some(1)
            && table.start >= bytes_of(2 * SECTORS)?
            && heap.start >= table.end()
            && (1..=MAX_CLUSTERS).contains(&count)
            && heap.end() <= size
            && table.entries() >= heap.limit().into()
            && heap.contains(root);
        let (sector_size, serial) = (1 << shift, le32_at(bytes, 0x64)?);
        is_valid.then_some(Self { sector_size, size, table, heap, root, serial, flags })
    }
}

/// Reads the boot sector whose region is whole: the first one, or else the backup. Returns one with a wrong checksum if there
/// is no other, or `None` if no one is valid.
///
/// # Errors
///
/// Fails if the first sector cannot be read.
pub(super) fn read(volume: &Volume) -> Result<Option<BootSector>> {
    let main = BootSector::parse(&volume.read(0, SIZE)?);
    let is_whole =
        |boot: &BootSector, start| region(volume, start, boot.sector_size).is_ok_and(Sum::is_equal);
    if main.as_ref().is_some_and(|boot| is_whole(boot, 0)) {
        return Ok(main);
    }
    let mut backups = (9..=12).filter_map(|shift| {
        let start = SECTORS << shift;
        let boot = BootSector::parse(&volume.read(start, SIZE).ok()?)?;
        (boot.sector_size == 1 << shift).then_some((start, boot))
    });
    let backup = backups.find(|(start, boot)| is_whole(boot, *start)).map(|(_, boot)| boot);
    Ok(backup.or(main))
}

/// The checksum of a boot region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    pub computed: u32,
    /// The stored checksum, or the first one that differs from the computed one: it is repeated in a whole sector.
    pub stored: u32,
}

impl Sum {
    pub fn is_equal(self) -> bool {
        self.computed == self.stored
    }
}

/// Computes the checksum of the boot region at an offset.
///
/// # Errors
///
/// Fails if it cannot be read.
pub(super) fn region(volume: &Volume, start: u64, sector_size: u64) -> Result<Sum> {
    let bytes = volume.read(start, (SECTORS * sector_size) as usize)?;
    let (content, stored) = bytes.split_at(((SECTORS - 1) * sector_size) as usize);
    let changing = |at| matches!(at, 0x6a | 0x6b | 0x70);
    let content = content.iter().enumerate().filter(|(at, _)| !changing(*at));
    let computed = checksum(content.map(|(_, byte)| *byte));
    let mut stored = stored.as_chunks().0.iter().map(|sum| u32::from_le_bytes(*sum));
    let stored = stored.find(|stored| *stored != computed).unwrap_or(computed);
    Ok(Sum { computed, stored })
}

/// Returns the checksum of bytes, as of boot regions and up-case tables.
pub(super) fn checksum(bytes: impl IntoIterator<Item = u8>) -> u32 {
    bytes.into_iter().fold(0, |sum: u32, byte| sum.rotate_right(1).wrapping_add(byte.into()))
}

/// Maximum number of clusters, of which three bits each are kept.
/// Limit in clusters.
const MAX_CLUSTERS: u32 = 1 << 30;
