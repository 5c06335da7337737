//! The metadata: sizes of the disk, its blocks and sectors, and where the parent locator is.

use super::guid::Guid;
use super::region::Region;
use super::units::{KIB, MIB};
use crate::error::{ErrorKind, Result};
use crate::formats::fields::{Head, array};
use crate::storage::HostFile;

/// The validated metadata of an image.
pub(super) struct Metadata {
    /// Virtual size in bytes.
    pub size: u64,
    pub block_size: u64,
    /// Size of a logical sector in bytes.
    pub sector_size: u64,
    /// The parent locator of a differencing image.
    pub locator: Option<Item>,
}

/// The place of a metadata item in the file.
#[derive(Clone, Copy)]
pub(super) struct Item {
    pub offset: u64,
    /// Length in bytes, at most [`MAX_ITEM`].
    pub length: u64,
}

impl Metadata {
    pub fn read(file: &HostFile, region: Region) -> Result<Self> {
        let items = Items::read(file, region)?;
        let [parameters, size, id, logical, physical] =
            [FILE_PARAMETERS, DISK_SIZE, DISK_ID, LOGICAL_SECTOR, PHYSICAL_SECTOR];
        for kind in [id, physical] {
            items.required(kind)?;
        }
        let flags = items.number(parameters, 4, 4)?;
        if flags & !(FIXED | HAS_PARENT) != 0 {
            let reason = format!("has unknown flags {flags:#x} in its file parameters");
            let at = items.required(parameters)?.offset + 4;
            return Err(file.error(ErrorKind::Unsupported, reason).at(at));
        }
        let locator = items.found[PARENT_LOCATOR.index];
        let metadata = Self {
            size: items.number(size, 0, 8)?,
            block_size: items.number(parameters, 0, 4)?,
            sector_size: items.number(logical, 0, 4)?,
            locator,
        };
        let corrupt = |kind, reason: String| -> Result<Self> {
            Err(file.corrupt(reason).at(items.required(kind)?.offset))
        };
        let Self { size: bytes, block_size, sector_size, .. } = metadata;
        if !block_size.is_power_of_two() || !(MIB..=MAX_BLOCK).contains(&block_size) {
            return corrupt(parameters, format!("block size {block_size} is not possible"));
        }
        if !matches!(sector_size, 512 | 4096) {
            return corrupt(logical, format!("logical sector size {sector_size} is not possible"));
        }
        if bytes > MAX_SIZE || !bytes.is_multiple_of(sector_size) {
            return corrupt(size, format!("virtual size {bytes} is not possible"));
        }
        if (flags & HAS_PARENT != 0) != locator.is_some() {
            let reason = "has a parent and no parent locator, or a locator and no parent".into();
            return corrupt(parameters, reason);
        }
        Ok(metadata)
    }
}

/// A known item: its position in [`KNOWN`], and how many bytes it needs.
#[derive(Clone, Copy)]
struct Kind {
    index: usize,
    name: &'static str,
    length: u64,
}

struct Items<'a> {
    file: &'a HostFile,
    region: Region,
    found: [Option<Item>; KNOWN.len()],
}

impl<'a> Items<'a> {
    fn read(file: &'a HostFile, region: Region) -> Result<Self> {
        let mut items = Self { file, region, found: [None; KNOWN.len()] };
        if region.length < TABLE_SIZE {
            return Err(file.corrupt("metadata region is too short").at(region.offset));
        }
        let table = Head::read(file, region.offset, TABLE_SIZE as usize)?;
        if !table.starts_with(b"metadata") {
            return Err(file.corrupt("metadata table has no signature").at(region.offset));
        }
        let count = usize::from(u16::from_le_bytes(array(table.bytes(), 10)));
        if count > MAX_ENTRIES {
            let reason = format!("metadata table has {count} entries, more than {MAX_ENTRIES}");
            return Err(file.corrupt(reason).at(region.offset + 10));
        }
        for at in (1..=count).map(|index| index * ENTRY) {
            items.add(&table.bytes()[at..at + ENTRY], region.offset + at as u64)?;
        }
        Ok(items)
    }

    /// Adds the item that a table entry describes. `at` is the offset of the entry.
    fn add(&mut self, entry: &[u8], at: u64) -> Result<()> {
        let [offset, length, flags] =
            [16, 20, 24].map(|at| u64::from(u32::from_le_bytes(array(entry, at))));
        let guid = Guid(array(entry, 0));
        let Some(index) = KNOWN.iter().position(|known| *known == guid) else {
            if flags & IS_REQUIRED == 0 {
                return Ok(());
            }
            let reason = format!("needs metadata of unknown type {guid}");
            return Err(self.file.error(ErrorKind::Unsupported, reason).at(at));
        };
        if flags & IS_USER != 0 {
            let reason = format!("has user metadata of the system's type {guid}");
            return Err(self.file.error(ErrorKind::Unsupported, reason).at(at));
        }
        let is_inside = (TABLE_SIZE..=self.region.length).contains(&offset)
            && length <= MAX_ITEM
            && offset + length <= self.region.length;
        if !is_inside {
            return Err(self.file.corrupt("metadata item lies outside of its region").at(at));
        }
        let item = Item { offset: self.region.offset + offset, length };
        if self.found[index].replace(item).is_some() {
            return Err(self.file.corrupt("metadata table has two items of one type").at(at));
        }
        Ok(())
    }

    /// Returns the place of an item that every image has.
    fn required(&self, kind: Kind) -> Result<Item> {
        match self.found[kind.index] {
            Some(item) if item.length >= kind.length => Ok(item),
            Some(item) => {
                let reason = format!("metadata item \"{}\" is too short", kind.name);
                Err(self.file.corrupt(reason).at(item.offset))
            }
            None => {
                let reason = format!("metadata item \"{}\" is missing", kind.name);
                Err(self.file.corrupt(reason).at(self.region.offset))
            }
        }
    }

    /// Reads a number of `width` bytes at offset `at` of an item.
    fn number(&self, kind: Kind, at: u64, width: usize) -> Result<u64> {
        let item = self.required(kind)?;
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes[..width], item.offset + at)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// In the order of the indices below.
const KNOWN: [Guid; 6] = [
    Guid::new(0xcaa16737_fa36_4d43_b3b6_33f0aa44e76b),
    Guid::new(0x2fa54224_cd1b_4876_b211_5dbed83bf4b8),
    Guid::new(0xbeca12ab_b2e6_4523_93ef_c309e000c746),
    Guid::new(0x8141bf1d_a96f_4709_ba47_f233a8faab5f),
    Guid::new(0xcda348c7_445d_4471_9cc9_e9885251c556),
    Guid::new(0xa8d35f2d_b30b_454d_abf7_d3d84834ab0c),
];
const FILE_PARAMETERS: Kind = Kind { index: 0, name: "file parameters", length: 8 };
const DISK_SIZE: Kind = Kind { index: 1, name: "virtual disk size", length: 8 };
const DISK_ID: Kind = Kind { index: 2, name: "virtual disk id", length: 16 };
const LOGICAL_SECTOR: Kind = Kind { index: 3, name: "logical sector size", length: 4 };
const PHYSICAL_SECTOR: Kind = Kind { index: 4, name: "physical sector size", length: 4 };
const PARENT_LOCATOR: Kind = Kind { index: 5, name: "parent locator", length: 20 };

/// Flags of a table entry.
const IS_USER: u64 = 1;
const IS_REQUIRED: u64 = 4;

/// Flags of the file parameters. A fixed image is read like any other.
const FIXED: u64 = 1;
const HAS_PARENT: u64 = 2;

const TABLE_SIZE: u64 = 64 * KIB;
const ENTRY: usize = 32;
const MAX_ENTRIES: usize = 2047;

/// Maximum size of a metadata item, as in the specification.
/// Limit in bytes.
const MAX_ITEM: u64 = 1 << 20;

/// Limits of the specification.
const MAX_BLOCK: u64 = 256 * MIB;
const MAX_SIZE: u64 = 64 << 40;
