//! Master boot records: four entries of sixteen bytes, and a list of such sectors for logical partitions.

use super::entries::{Details, Label, Partition, Table, TableError};
use super::kind::Kind;
use crate::Source;

/// Returns the boot sector of a disk, if it has a partition table.
pub(super) fn read(source: &dyn Source) -> Result<Option<BootSector>, TableError> {
    boot_sector(source, 0)
}

impl BootSector {
    /// Returns whether this is the protective MBR of a disk with a GPT.
    pub(super) fn protects_gpt(&self) -> bool {
        self.entries().iter().any(|entry| entry.kind == GPT_PROTECTION)
    }

    /// Returns the last sector that the protective entry covers.
    pub(super) fn protected_end(&self) -> Option<u64> {
        let entry = self.entries().into_iter().find(|entry| entry.kind == GPT_PROTECTION)?;
        (u64::from(entry.start) + u64::from(entry.count)).checked_sub(1)
    }

    /// Returns the number of the first entry with a type and no sectors, or with sectors and no type. Hybrid disks have an
    /// entry of one sector without a type, because some firmware looks for the flag of a bootable partition.
    pub(super) fn incomplete(&self) -> Option<u32> {
        let is_incomplete = |entry: &Entry| match entry.kind {
            0 => entry.count > 1,
            _ => entry.count == 0,
        };
        let mut entries = (1..).zip(self.entries());
        entries.find(|(_, entry)| is_incomplete(entry)).map(|(number, _)| number)
    }

    /// Returns whether there is a partition in a sector.
    pub(super) fn covers(&self, sector: u64) -> bool {
        self.entries().iter().filter(|entry| entry.is_used()).any(|entry| {
            let start = u64::from(entry.start);
            (start..start + u64::from(entry.count)).contains(&sector)
        })
    }

    /// Returns whether an entry describes a partition.
    pub(super) fn is_used(&self) -> bool {
        self.entries().iter().any(|entry| entry.is_used())
    }

    /// Returns the partitions, including logical ones.
    pub(super) fn partitions(&self, source: &dyn Source) -> Table {
        let mut table = Table { label: Some(Label::Mbr), ..Table::default() };
        for (number, entry) in (1..).zip(self.entries()) {
            if entry.is_extended() {
                if let Err(error) = logical(source, entry.start, &mut table) {
                    table.lost = Some(error);
                }
            } else if entry.is_used() {
                table.add(entry, number, 0);
            }
        }
        table.partitions.sort_by_key(|partition| partition.number);
        table
    }

    /// Returns whether this is the boot sector of a FAT file system, by its jump and parameters. A disk can have a table in it.
    fn is_fat(&self) -> bool {
        let bytes = &self.0;
        let sector = u16::from_le_bytes([bytes[11], bytes[12]]);
        matches!(bytes[0], 0xeb | 0xe9)
            && sector.is_power_of_two()
            && (512..=4096).contains(&sector)
            && bytes[13].is_power_of_two()
            && (bytes[14], bytes[15]) != (0, 0)
            && matches!(bytes[16], 1 | 2)
            && matches!(bytes[21], 0xf0 | 0xf8..)
    }

    fn entries(&self) -> [Entry; 4] {
        let number = |at: usize| self.0[at..].first_chunk().map_or(0, |it| u32::from_le_bytes(*it));
        [0, 1, 2, 3].map(|index| {
            let at = ENTRIES + index * ENTRY;
            Entry { kind: self.0[at + 4], start: number(at + 8), count: number(at + 12) }
        })
    }
}

/// An entry of an MBR. Start and count are in sectors.
#[derive(Clone, Copy)]
struct Entry {
    kind: u8,
    start: u32,
    count: u32,
}

impl Entry {
    fn is_empty(self) -> bool {
        (self.kind, self.start, self.count) == (0, 0, 0)
    }

    fn is_used(self) -> bool {
        self.kind != 0 && self.count > 0
    }

    fn is_extended(self) -> bool {
        self.is_used() && matches!(self.kind, 0x05 | 0x0f | 0x85)
    }

    /// Returns the partition of an entry in sector `base`.
    fn partition(self, number: u32, base: u64) -> Partition {
        let offset = (base + u64::from(self.start)) * SECTOR;
        Partition { number, offset, length: u64::from(self.count) * SECTOR }
    }
}

impl Table {
    /// Adds the partition of an entry in sector `base`.
    fn add(&mut self, entry: Entry, number: u32, base: u64) {
        self.partitions.push(entry.partition(number, base));
        let kind = Kind::Mbr(entry.kind);
        self.details.insert(number, Details { kind, uuid: None, name: String::new() });
    }
}

/// A sector with four entries.
pub(super) struct BootSector([u8; SECTOR as usize]);

fn boot_sector(source: &dyn Source, sector: u64) -> Result<Option<BootSector>, TableError> {
    let offset = sector * SECTOR;
    if offset + SECTOR > source.size() {
        return Ok(None);
    }
    let mut bytes = [0; SECTOR as usize];
    source.read_exact_at(&mut bytes, offset)?;
    let is_boot_sector = bytes.ends_with(&BOOT_SIGNATURE);
    // It may also be the boot sector of a file system. The flags of partitions are 0 or 0x80.
    let has_table = (0..4).all(|index| matches!(bytes[ENTRIES + index * ENTRY], 0 | 0x80));
    let found = BootSector(bytes);
    let has_table =
        has_table && !(found.is_fat() && found.entries().iter().all(|it| it.is_empty()));
    Ok((is_boot_sector && has_table).then_some(found))
}

/// Follows the list of logical partitions, which may only lead forward. Even an empty extended
/// partition has a record.
fn logical(source: &dyn Source, first: u32, table: &mut Table) -> Result<(), TableError> {
    let mut next = u64::from(first);
    for number in 5..5 + MAX_LOGICAL {
        let Some(sector) = boot_sector(source, next)? else {
            let reason = "no record of a logical partition";
            return Err(TableError::Mbr { reason, sector: next });
        };
        let [partition, link, ..] = sector.entries();
        if partition.is_used() {
            table.add(partition, number, next);
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

const SECTOR: u64 = 512;
const BOOT_SIGNATURE: [u8; 2] = [0x55, 0xaa];
const ENTRIES: usize = 446;
const ENTRY: usize = 16;

/// Type of the entry that protects a disk with a GPT.
const GPT_PROTECTION: u8 = 0xee;

/// Maximum number of logical partitions, as in Linux. Each is in a list of sectors that lead to the next one.
/// Limit in partitions.
const MAX_LOGICAL: u32 = 251;
