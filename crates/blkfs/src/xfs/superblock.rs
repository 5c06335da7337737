//! The primary superblock: the geometry of the file system and its features.

use crate::bytes::{be16_at, be32_at, be64_at, u8_at};
use crate::error::{Error, Result};

/// The fields of a primary superblock that are used, of a geometry that is possible.
#[derive(Debug)]
pub struct Superblock {
    /// Whether blocks have checksums.
    pub is_v5: bool,
    pub block_size: u32,
    pub block_log: u32,
    /// Number of blocks of the file system.
    pub blocks: u64,
    pub group_blocks: u32,
    pub group_count: u32,
    /// Bits of an [`FsBlock`] that count blocks within an allocation group.
    pub group_log: u32,
    pub sector_size: u32,
    pub inode_size: u32,
    /// Bits of an inode number that count inodes within a block.
    pub inodes_log: u32,
    pub directory_log: u32,
    pub log: LogPlace,
    pub root: u64,
    pub realtime_blocks: u64,
    pub realtime_bitmap: u64,
    pub realtime_summary: u64,
    pub quotas: [u64; 3],
    pub uuid: [u8; 16],
    /// The UUID that blocks hold. It stays when the UUID of the file system changes.
    pub block_uuid: [u8; 16],
    pub label: [u8; 12],
    pub has_file_types: bool,
    pub has_sparse_inodes: bool,
    pub has_finobt: bool,
    pub has_rmapbt: bool,
    pub has_refcountbt: bool,
    pub is_in_progress: bool,
    pub needs_repair: bool,
    /// Read-only compatible features that are not known.
    pub unknown_features: u32,
}

/// The place of the log, in the units of the superblock.
#[derive(Clone, Copy, Debug)]
pub struct LogPlace {
    /// The first block, or 0 if the log is on another device.
    pub start: FsBlock,
    pub blocks: u32,
}

/// The number of a block as stored: the group in the upper bits, the block within the group in the lower ones.
pub type FsBlock = u64;

/// The number of a block, counted from the beginning of the file system.
pub type Block = u64;

/// `XFSB`, the first bytes of each superblock.
pub const MAGIC: u32 = 0x5846_5342;

/// Size of the smallest sector, which holds all fields.
pub const MIN_SECTOR: usize = 512;

impl Superblock {
    /// Parses the first sector of a volume that begins with [`MAGIC`].
    pub fn parse(sector: &[u8]) -> Result<Self> {
        let all = Self::fields(sector).ok_or_else(|| invalid("a short superblock"))?;
        all.check_geometry()?;
        all.check_features(sector)?;
        Ok(all)
    }

    fn fields(bytes: &[u8]) -> Option<Self> {
        let version = be16_at(bytes, 100)?;
        let is_v5 = version & 0xf == 5;
        let (features2, incompatible) = (be32_at(bytes, 200)?, be32_at(bytes, 216)?);
        let read_only = be32_at(bytes, 212)?;
        let has_more = version & MORE_BITS != 0;
        let has_meta_uuid = is_v5 && incompatible & META_UUID != 0;
        let uuid_at = |at: usize| bytes.get(at..)?.first_chunk::<16>().copied();
        let ftype2 = !is_v5 && has_more && features2 & FEATURE2_FTYPE != 0;
        Some(Self {
            is_v5,
            block_size: be32_at(bytes, 4)?,
            block_log: u8_at(bytes, 120)?.into(),
            blocks: be64_at(bytes, 8)?,
            group_blocks: be32_at(bytes, 84)?,
            group_count: be32_at(bytes, 88)?,
            group_log: u8_at(bytes, 124)?.into(),
            sector_size: be16_at(bytes, 102)?.into(),
            inode_size: be16_at(bytes, 104)?.into(),
            inodes_log: u8_at(bytes, 123)?.into(),
            directory_log: u8_at(bytes, 192)?.into(),
            log: LogPlace { start: be64_at(bytes, 48)?, blocks: be32_at(bytes, 96)? },
            root: be64_at(bytes, 56)?,
            realtime_blocks: be64_at(bytes, 16)?,
            realtime_bitmap: be64_at(bytes, 64)?,
            realtime_summary: be64_at(bytes, 72)?,
            quotas: [be64_at(bytes, 160)?, be64_at(bytes, 168)?, be64_at(bytes, 232)?],
            uuid: uuid_at(32)?,
            block_uuid: uuid_at(if has_meta_uuid { 248 } else { 32 })?,
            label: bytes.get(108..)?.first_chunk().copied()?,
            has_file_types: ftype2 || is_v5 && incompatible & FTYPE != 0,
            has_sparse_inodes: is_v5 && incompatible & SPARSE_INODES != 0,
            has_finobt: is_v5 && read_only & 1 != 0,
            has_rmapbt: is_v5 && read_only & 2 != 0,
            has_refcountbt: is_v5 && read_only & 4 != 0,
            is_in_progress: u8_at(bytes, 126)? != 0,
            needs_repair: is_v5 && incompatible & NEEDS_REPAIR != 0,
            unknown_features: if is_v5 { read_only & !KNOWN_READ_ONLY } else { 0 },
        })
    }

    fn check_geometry(&self) -> Result<()> {
        let is_power = |size: u32, log: u32| 1u32.checked_shl(log) == Some(size);
        let min_block = if self.is_v5 { 1024 } else { 512 };
        if !is_power(self.block_size, self.block_log)
            || !(min_block..=MAX_BLOCK).contains(&self.block_size)
        {
            return Err(invalid(format!("blocks of {} bytes", self.block_size)));
        }
        let sector = self.sector_size;
        if !sector.is_power_of_two() || !(512..=32768).contains(&sector) || sector > self.block_size
        {
            return Err(invalid(format!("sectors of {sector} bytes")));
        }
        if !(256..=2048).contains(&self.inode_size)
            || self.block_size.checked_div(self.inode_size).is_none_or(|n| n < 2)
            || !is_power(self.block_size / self.inode_size, self.inodes_log)
        {
            return Err(invalid(format!("inodes of {} bytes", self.inode_size)));
        }
        if self.directory_log + self.block_log > MAX_BLOCK.ilog2() {
            return Err(invalid(format!("directory blocks of 2^{} blocks", self.directory_log)));
        }
        self.check_groups()
    }

    fn check_groups(&self) -> Result<()> {
        let (count, size) = (u64::from(self.group_count), u64::from(self.group_blocks));
        // Both are less than 2^32.
        let is_possible = size >= MIN_GROUP_BLOCKS
            && self
                .group_blocks
                .checked_next_power_of_two()
                .is_some_and(|up| up.ilog2() == self.group_log)
            && count > 0
            && self.blocks > (count - 1) * size
            && self.blocks <= count * size
            && self.blocks.checked_mul(self.block_size.into()).is_some_and(|it| it < 1 << 63);
        if !is_possible {
            let reason = format!("{count} allocation groups of {size} for {} blocks", self.blocks);
            return Err(invalid(reason));
        }
        Ok(())
    }

    fn check_features(&self, bytes: &[u8]) -> Result<()> {
        let version = be16_at(bytes, 100).unwrap_or(0);
        if !matches!(version & 0xf, 4 | 5) {
            return Err(Error::Unsupported(format!("version {} of XFS", version & 0xf)));
        }
        if version & DIRECTORIES_V2 == 0 {
            return Err(Error::Unsupported("version 1 of XFS directories".to_owned()));
        }
        let incompatible = be32_at(bytes, 216).unwrap_or(0);
        if self.is_v5 && incompatible & !KNOWN_INCOMPATIBLE != 0 {
            let unknown = incompatible & !KNOWN_INCOMPATIBLE;
            let names: Vec<_> = UNREAD
                .iter()
                .filter(|(bit, _)| unknown & bit != 0)
                .map(|(_, name)| *name)
                .collect();
            let names =
                if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
            return Err(Error::Unsupported(format!("XFS feature {unknown:#x}{names}")));
        }
        Ok(())
    }

    /// Returns the block that a stored number means, if it exists.
    pub fn block(&self, number: FsBlock) -> Option<Block> {
        let group = number.checked_shr(self.group_log)?;
        let within = number & ((1u64 << self.group_log) - 1);
        if group >= self.group_count.into() || within >= self.group_blocks.into() {
            return None;
        }
        let block = group * u64::from(self.group_blocks) + within;
        (block < self.blocks).then_some(block)
    }

    /// Returns the first of `count` blocks that exist and are in one group.
    pub fn run(&self, number: FsBlock, count: u64) -> Option<Block> {
        let first = self.block(number)?;
        let group = first / u64::from(self.group_blocks);
        let end = (group + 1).saturating_mul(self.group_blocks.into()).min(self.blocks);
        (count > 0 && first.checked_add(count)? <= end).then_some(first)
    }

    /// Returns the offset of a block in bytes.
    pub fn offset(&self, block: Block) -> u64 {
        block.saturating_mul(self.block_size.into())
    }

    /// Returns the size of `count` blocks in bytes.
    pub fn bytes(&self, count: u64) -> u64 {
        count.saturating_mul(self.block_size.into())
    }

    /// Returns the number of an inode from its group and its number within it.
    pub fn inode_number(&self, group: u32, within: u32) -> u64 {
        u64::from(group) << (self.group_log + self.inodes_log) | u64::from(within)
    }

    /// Returns the size of a directory block in bytes.
    pub fn directory_block_size(&self) -> usize {
        1 << (self.block_log + self.directory_log)
    }
}

fn invalid(what: impl std::fmt::Display) -> Error {
    Error::damaged(0, format!("XFS superblock with {what}"))
}

const MAX_BLOCK: u32 = 1 << 16;
const MIN_GROUP_BLOCKS: u64 = 64;

// Bits of the version.
const DIRECTORIES_V2: u16 = 0x2000;
const MORE_BITS: u16 = 0x8000;
const FEATURE2_FTYPE: u32 = 0x200;

// Incompatible features.
const FTYPE: u32 = 1;
const SPARSE_INODES: u32 = 2;
const META_UUID: u32 = 4;
const BIGTIME: u32 = 8;
const NEEDS_REPAIR: u32 = 0x10;
const LARGE_COUNTERS: u32 = 0x20;
const EXCHANGE_RANGE: u32 = 0x40;
const PARENT_POINTERS: u32 = 0x80;
const KNOWN_INCOMPATIBLE: u32 = FTYPE
    | SPARSE_INODES
    | META_UUID
    | BIGTIME
    | NEEDS_REPAIR
    | LARGE_COUNTERS
    | EXCHANGE_RANGE
    | PARENT_POINTERS;

/// Features that have a name, but are not read.
const UNREAD: [(u32, &str); 3] =
    [(0x100, "metadata directories"), (0x200, "zoned devices"), (0x400, "gaps in zones")];

/// finobt, rmapbt, reflink and inobtcount.
const KNOWN_READ_ONLY: u32 = 0xf;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a superblock of version 5 with four groups of 1000 blocks of 4 KiB, of which the last is shorter.
    fn sector(change: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let mut bytes = vec![0; MIN_SECTOR];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC.to_be_bytes());
        put(4, &4096u32.to_be_bytes());
        put(8, &3500u64.to_be_bytes());
        put(84, &1000u32.to_be_bytes());
        put(88, &4u32.to_be_bytes());
        put(100, &0xb4a5u16.to_be_bytes());
        put(102, &512u16.to_be_bytes());
        put(104, &512u16.to_be_bytes());
        put(120, &[12, 9, 9, 3, 10]);
        put(216, &(FTYPE | META_UUID).to_be_bytes());
        put(32, &[1; 16]);
        put(248, &[2; 16]);
        change(&mut bytes);
        bytes
    }

    #[test]
    fn blocks_and_runs() {
        let it = Superblock::parse(&sector(|_| ())).unwrap();
        assert!(it.is_v5 && it.has_file_types && !it.has_rmapbt);
        assert_eq!((it.uuid, it.block_uuid), ([1; 16], [2; 16]));
        assert_eq!(it.block(999), Some(999));
        assert_eq!(it.block(1000), None);
        assert_eq!(it.block(1024), Some(1000));
        assert_eq!(it.block(3 * 1024 + 499), Some(3499));
        assert_eq!(it.block(3 * 1024 + 500), None);
        assert_eq!(it.block(4 * 1024), None);
        assert_eq!(it.block(u64::MAX), None);
        assert_eq!(it.run(990, 10), Some(990));
        assert_eq!(it.run(990, 11), None);
        assert_eq!(it.run(990, 0), None);
        assert_eq!(it.run(3 * 1024, 501), None);
        assert_eq!(it.inode_number(1, 5), 1 << 13 | 5);
    }

    #[test]
    fn impossible_geometries_are_refused() {
        let change = |at: usize, byte: u8| {
            Superblock::parse(&sector(|bytes| bytes[at] = byte)).unwrap_err().to_string()
        };
        assert!(change(120, 13).contains("blocks of 4096 bytes"));
        assert!(change(102, 0x20).contains("sectors of 8192 bytes"));
        assert!(change(104, 0xff).contains("inodes of"));
        assert!(change(123, 4).contains("inodes of 512 bytes"));
        assert!(change(124, 11).contains("4 allocation groups"));
        assert!(change(91, 5).contains("5 allocation groups"));
        assert!(change(91, 0).contains("0 allocation groups"));
        assert!(change(8, 0xff).contains("allocation groups"));
        assert!(change(192, 5).contains("2^5 blocks"));
    }

    #[test]
    fn unread_features_are_named() {
        let refused = |at: usize, byte: u8| {
            Superblock::parse(&sector(|bytes| bytes[at] |= byte)).unwrap_err().to_string()
        };
        assert!(refused(218, 1).contains("0x100 (metadata directories)"));
        assert!(refused(216, 0x80).contains("0x80000000 is not"));
        let old = Superblock::parse(&sector(|bytes| bytes[100] &= !0x20)).unwrap_err();
        assert!(old.to_string().contains("version 1 of XFS directories"));
    }
}
