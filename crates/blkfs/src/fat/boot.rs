//! The boot sector of FAT: its fields and their rules, and how to tell it from others.

use super::clusters::{Heap, Table, Width};
use crate::bytes::{le16_at, le32_at, u8_at};
use crate::kind::Kind;

/// Size of the part of a boot sector that has fields and code, in bytes.
pub(super) const SIZE: usize = 512;

/// Content of a boot sector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BootSector {
    pub kind: Kind,
    /// Size of a sector in bytes.
    pub sector_size: u64,
    /// Size of the volume in bytes.
    pub size: u64,
    pub table: Table,
    pub heap: Heap,
    pub root: Root,
    /// Offset of the FS information sector in bytes.
    pub information: Option<u64>,
    /// Offset of the backup boot sector in bytes.
    pub backup: Option<u64>,
    /// Serial number and label, if the fields exist.
    pub serial: Option<u32>,
    pub label: Option<[u8; 11]>,
    /// Bits for the state of the volume.
    pub state: u8,
    /// Whether it has what one should have: a jump, a media type, the name of the kind, and a signature. It has no partition table.
    pub is_named: bool,
}

/// The place of the root directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// An area before the clusters, from an offset on, and its size in bytes.
    Area(u64, u64),
    /// A chain of clusters.
    Chain(u32),
}

/// The fields that the places of everything else follow from.
struct Fields {
    sector_size: u64,
    cluster_sectors: u64,
    reserved: u64,
    copies: u8,
    root_entries: u64,
    sectors: u64,
    table_sectors: u64,
    is_wide: bool,
}

impl BootSector {
    /// Returns `None` if a field violates a rule.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < SIZE {
            return None;
        }
        if OTHERS.iter().any(|(at, name)| bytes[*at..].starts_with(name.as_bytes())) {
            return None;
        }
        let fields = Fields::parse(bytes)?;
        let (kind, heap) = fields.clusters()?;
        let extended = if fields.is_wide { 0x40 } else { 0x24 };
        let signature = u8_at(bytes, extended + 2)?;
        let table = fields.table(bytes, kind)?;
        let entries = u32::try_from(table.entries()).ok()?.checked_sub(2)?;
        let heap = Heap { count: heap.count.min(entries), ..heap };
        let area = fields.root_start();
        let root = match le32_at(bytes, 0x2c)? {
            cluster if fields.is_wide && heap.contains(cluster) => Root::Chain(cluster),
            _ if fields.root_entries > 0 => Root::Area(area, heap.start.checked_sub(area)?),
            _ => return None,
        };
        let has_fields = matches!(signature, 0x28 | 0x29);
        Some(Self {
            kind,
            sector_size: fields.sector_size,
            size: fields.sectors * fields.sector_size,
            table,
            heap,
            root,
            information: fields.reserved_sector(le16_at(bytes, 0x30)?),
            backup: fields.reserved_sector(le16_at(bytes, 0x32)?),
            serial: has_fields.then(|| le32_at(bytes, extended + 3)).flatten(),
            label: bytes[extended + 7..].first_chunk().copied().filter(|_| signature == 0x29),
            state: u8_at(bytes, extended + 1)?,
            is_named: is_typical(bytes, extended),
        })
    }

    /// Returns the name of the boot sector's label field as a user gave it.
    pub fn label(&self) -> Option<&[u8]> {
        self.label.as_ref().map(|label| &label[..]).filter(|label| *label != b"NO NAME    ")
    }

    /// Returns whether the first entry of a table can belong to this volume: the media type, and ones.
    pub fn is_first_entry(&self, entry: &[u8]) -> bool {
        let rest = match self.kind {
            Kind::Fat12 => entry.get(1).is_some_and(|byte| byte & 0xf == 0xf),
            Kind::Fat16 => entry.get(1) == Some(&0xff),
            _ => entry.get(1..4).is_some_and(|rest| rest[..2] == [0xff; 2] && rest[2] & 0xf == 0xf),
        };
        rest && entry.first().is_some_and(|media| *media >= 0xf0)
    }
}

impl Fields {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let or = |short: u16, long: u32| if short == 0 { long } else { short.into() };
        let narrow = le16_at(bytes, 0x16)?;
        let fields = Self {
            sector_size: le16_at(bytes, 0xb)?.into(),
            cluster_sectors: u8_at(bytes, 0xd)?.into(),
            reserved: le16_at(bytes, 0xe)?.into(),
            copies: u8_at(bytes, 0x10)?,
            root_entries: le16_at(bytes, 0x11)?.into(),
            sectors: or(le16_at(bytes, 0x13)?, le32_at(bytes, 0x20)?).into(),
            table_sectors: or(narrow, le32_at(bytes, 0x24)?).into(),
            is_wide: narrow == 0,
        };
        let is_valid = [512, 1024, 2048, 4096].contains(&fields.sector_size)
            && fields.cluster_sectors.is_power_of_two()
            && fields.reserved > 0
            && fields.copies > 0
            && fields.table_sectors > 0
            && fields.root_entries.is_multiple_of(16)
            && (fields.is_wide || fields.root_entries > 0);
        is_valid.then_some(fields)
    }

    /// Returns the kind, which follows from the number of clusters, and the clusters.
    fn clusters(&self) -> Option<(Kind, Heap)> {
        let start = self.root_start() + (self.root_entries * 32).next_multiple_of(self.sector_size);
        let size = (self.sectors * self.sector_size).checked_sub(start)?;
        let cluster_size = self.cluster_sectors * self.sector_size;
        let count = u32::try_from(size / cluster_size).ok().filter(|count| *count > 0)?;
        let kind = match count {
            _ if self.is_wide => Kind::Fat32,
            ..4085 => Kind::Fat12,
            4085..65525 => Kind::Fat16,
            _ => return None,
        };
        Some((kind, Heap { start, cluster_size, count: count.min(MAX_CLUSTERS) }))
    }

    fn table(&self, bytes: &[u8], kind: Kind) -> Option<Table> {
        let flags = if self.is_wide { le16_at(bytes, 0x28)? } else { 0 };
        let is_mirrored = flags & 0x80 == 0;
        let active = (flags & 0xf) as u8;
        Some(Table {
            width: match kind {
                Kind::Fat12 => Width::Bits12,
                Kind::Fat16 => Width::Bits16,
                _ => Width::Bits28,
            },
            start: self.reserved * self.sector_size,
            size: self.table_sectors * self.sector_size,
            copies: self.copies,
            active: if is_mirrored || active >= self.copies { 0 } else { active },
            is_mirrored,
        })
    }

    /// Returns the offset after the tables. All factors have at most 32 bits, so that the result has no more than 53.
    fn root_start(&self) -> u64 {
        (self.reserved + u64::from(self.copies) * self.table_sectors) * self.sector_size
    }

    /// Returns the offset of a reserved sector of FAT32.
    fn reserved_sector(&self, number: u16) -> Option<u64> {
        let is_reserved = number > 0 && u64::from(number) < self.reserved;
        (self.is_wide && is_reserved).then(|| u64::from(number) * self.sector_size)
    }
}

/// Returns whether a boot sector has a jump, a media type, the name of a kind, a signature, and no partition table.
fn is_typical(bytes: &[u8], extended: usize) -> bool {
    matches!(bytes[0], 0xeb | 0xe9)
        && matches!(bytes[0x15], 0xf0 | 0xf8..)
        && bytes[extended + 18..].starts_with(b"FAT")
        && bytes[446..510] == [0; 64]
        && bytes[510..512] == [0x55, 0xaa]
}

/// Returns whether the name of FAT32 is in a boot sector, whatever else is.
pub(super) fn is_named_fat32(bytes: &[u8]) -> bool {
    bytes[0x52..].starts_with(b"FAT32   ")
}

/// The usual offsets of backup boot sectors: sector 6.
pub(super) const BACKUPS: [u64; 4] = [6 * 512, 6 * 1024, 6 * 2048, 6 * 4096];

/// Maximum number of clusters of FAT32, whose entries have 28 bits.
const MAX_CLUSTERS: u32 = 0x0fff_fff5;

/// Names of other file systems whose boot sectors may have fields like FAT's, and their offsets.
const OTHERS: [(usize, &str); 7] = [
    (3, "NTFS    "),
    (3, "EXFAT   "),
    (3, "ReFS"),
    (3, "-FVE-FS-"),
    (0x36, "HPFS    "),
    (0x36, "JFS     "),
    (0x52, "NTFS    "),
];
