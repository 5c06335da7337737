//! The superblock: which features there are, and where everything is.

use crate::bytes::{le16_at, le32_at, le64_at, u8_at};
use crate::error::{Error, Result};
use crate::kind::Kind;

/// Features that change nothing for programs that do not know them.
pub(super) mod compat {
    pub const HAS_JOURNAL: u32 = 0x4;
    pub const RESIZE_INODE: u32 = 0x10;
    pub const SPARSE_SUPER2: u32 = 0x200;
    pub const ORPHAN_FILE: u32 = 0x1000;
}

/// Features without which nothing can be read.
pub(super) mod incompat {
    pub const FILETYPE: u32 = 0x2;
    pub const RECOVER: u32 = 0x4;
    pub const JOURNAL_DEV: u32 = 0x8;
    pub const META_BG: u32 = 0x10;
    pub const SIXTY_FOUR_BIT: u32 = 0x80;
    pub const MMP: u32 = 0x100;
    pub const EA_INODE: u32 = 0x400;
    pub const CSUM_SEED: u32 = 0x2000;
    /// Every feature that this reader knows: all but compression and those that do not exist yet.
    pub const KNOWN: u32 = 0x3_f7de;
}

/// Features without which nothing can be written.
pub(super) mod ro_compat {
    pub const SPARSE_SUPER: u32 = 0x1;
    pub const LARGE_FILE: u32 = 0x2;
    pub const BTREE_DIR: u32 = 0x4;
    pub const GDT_CSUM: u32 = 0x10;
    pub const QUOTA: u32 = 0x100;
    pub const BIGALLOC: u32 = 0x200;
    pub const METADATA_CSUM: u32 = 0x400;
}

/// The superblock, with values that were compared with each other.
#[derive(Clone, Debug)]
pub(super) struct Superblock {
    compat: u32,
    incompat: u32,
    ro_compat: u32,
    /// Bytes.
    pub block_size: u64,
    /// Blocks of a bit in a block bitmap.
    pub cluster_blocks: u64,
    /// Number of blocks, those before `first_block` included.
    pub blocks: u64,
    /// The first block of group 0.
    pub first_block: u64,
    pub blocks_per_group: u64,
    pub groups: u64,
    pub inodes: u64,
    pub inodes_per_group: u64,
    /// Bytes.
    pub inode_size: usize,
    /// Bytes of a group descriptor.
    pub descriptor_size: usize,
    pub reserved_descriptor_blocks: u64,
    pub first_meta_bg: u64,
    pub backup_groups: [u64; 2],
    pub journal_inode: u64,
    pub journal_uuid: [u8; 16],
    pub quota_inodes: [u64; 3],
    pub orphan_inode: u64,
    pub mmp_block: u64,
    pub checksum_type: u8,
    pub checksum_seed: u32,
    pub uuid: [u8; 16],
    pub label: [u8; 16],
    pub state: u16,
    pub is_of_linux: bool,
}

impl Superblock {
    /// Reads the superblock of the 1024 bytes at its place. Returns `None` if it is none.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>> {
        let is_plausible = le16_at(bytes, 0x38) == Some(MAGIC)
            && le32_at(bytes, 0x4c).is_some_and(|revision| revision <= 1)
            && bytes.len() >= SIZE;
        if !is_plausible {
            return Ok(None);
        }
        let superblock = Self::of_fields(bytes).ok_or_else(|| damaged("its fields"))?;
        let unknown = superblock.incompat & !incompat::KNOWN;
        if unknown != 0 {
            return Err(Error::Unsupported(format!("the feature {unknown:#x} of ext4")));
        }
        superblock.validate()?;
        Ok(Some(superblock))
    }

    fn of_fields(bytes: &[u8]) -> Option<Self> {
        let half = |at| le16_at(bytes, at).map(u64::from);
        let word = |at| le32_at(bytes, at).map(u64::from);
        let incompat = le32_at(bytes, 0x60)?;
        let ro_compat = le32_at(bytes, 0x64)?;
        let is_wide = incompat & incompat::SIXTY_FOUR_BIT != 0;
        let (block_log, cluster_log) = (word(0x18)?, word(0x1c)?);
        let cluster_log = match ro_compat & ro_compat::BIGALLOC {
            0 => 0,
            _ => cluster_log.checked_sub(block_log).filter(|log| *log <= MAX_CLUSTER_LOG)?,
        };
        let block_size = 1024 << Some(block_log).filter(|log| *log <= MAX_BLOCK_LOG)?;
        let (first_block, blocks_per_group) = (word(0x14)?, word(0x20)?);
        let blocks = word(4)? | if is_wide { word(0x150)? << 32 } else { 0 };
        let has_revision = word(0x4c)? > 0;
        Some(Self {
            compat: le32_at(bytes, 0x5c)?,
            incompat,
            ro_compat,
            block_size,
            cluster_blocks: 1 << cluster_log,
            blocks,
            first_block,
            blocks_per_group,
            groups: blocks.checked_sub(first_block)?.checked_next_multiple_of(blocks_per_group)?
                / blocks_per_group,
            inodes: word(0)?,
            inodes_per_group: word(0x28)?,
            inode_size: if has_revision { le16_at(bytes, 0x58)?.into() } else { 128 },
            descriptor_size: if is_wide { le16_at(bytes, 0xfe)?.into() } else { 32 },
            reserved_descriptor_blocks: half(0xce)?,
            first_meta_bg: word(0x104)?,
            backup_groups: [word(0x24c)?, word(0x250)?],
            journal_inode: word(0xe0)?,
            journal_uuid: *bytes.get(0xd0..)?.first_chunk()?,
            quota_inodes: [word(0x240)?, word(0x244)?, word(0x26c)?],
            orphan_inode: word(0x280)?,
            mmp_block: le64_at(bytes, 0x168)?,
            checksum_type: u8_at(bytes, 0x175)?,
            checksum_seed: le32_at(bytes, 0x270)?,
            uuid: *bytes.get(0x68..)?.first_chunk()?,
            label: *bytes.get(0x78..)?.first_chunk()?,
            state: le16_at(bytes, 0x3a)?,
            is_of_linux: word(0x48)? == 0,
        })
    }

    /// Fails unless the fields allow to compute places.
    fn validate(&self) -> Result<()> {
        if self.incompat(incompat::JOURNAL_DEV) {
            return Ok(());
        }
        let bits = self.block_size * 8;
        let clusters = self.blocks_per_group / self.cluster_blocks;
        let inode_sizes = 128..=self.block_size as usize;
        let is_group_valid = self.blocks_per_group.is_multiple_of(self.cluster_blocks)
            && (8..=bits).contains(&clusters)
            && (1..=bits).contains(&self.inodes_per_group);
        if self.first_block > 1 || self.blocks <= self.first_block {
            return Err(damaged("its number of blocks"));
        }
        if !is_group_valid || self.inodes > self.groups.saturating_mul(self.inodes_per_group) {
            return Err(damaged("the size of its groups"));
        }
        if !inode_sizes.contains(&self.inode_size) || !self.inode_size.is_power_of_two() {
            return Err(damaged("its size of inodes"));
        }
        let descriptor_sizes = if self.incompat(incompat::SIXTY_FOUR_BIT) { 64 } else { 32 }..=1024;
        if !descriptor_sizes.contains(&self.descriptor_size)
            || !self.descriptor_size.is_power_of_two()
        {
            return Err(damaged("its size of group descriptors"));
        }
        if self.groups > MAX_GROUPS || self.blocks > u64::MAX / self.block_size {
            return Err(Error::Unsupported(format!("an ext4 with {} groups", self.groups)));
        }
        Ok(())
    }

    pub fn compat(&self, feature: u32) -> bool {
        self.compat & feature != 0
    }

    pub fn incompat(&self, feature: u32) -> bool {
        self.incompat & feature != 0
    }

    pub fn ro_compat(&self, feature: u32) -> bool {
        self.ro_compat & feature != 0
    }

    /// Returns whether group descriptors say which parts of a group were never initialised.
    pub fn has_uninitialised(&self) -> bool {
        self.ro_compat(ro_compat::GDT_CSUM | ro_compat::METADATA_CSUM)
    }

    /// Returns the kind as libblkid decides.
    pub fn kind(&self) -> Kind {
        let ext2 = (incompat::FILETYPE | incompat::META_BG, EXT2_RO_COMPAT);
        let ext3 = (ext2.0 | incompat::RECOVER, EXT2_RO_COMPAT);
        let is_within = |(incompat, ro_compat): (u32, u32)| {
            self.incompat & !incompat == 0 && self.ro_compat & !ro_compat == 0
        };
        if self.incompat(incompat::JOURNAL_DEV) {
            Kind::Jbd
        } else if !self.compat(compat::HAS_JOURNAL) && is_within(ext2) {
            Kind::Ext2
        } else if self.compat(compat::HAS_JOURNAL) && is_within(ext3) {
            Kind::Ext3
        } else {
            Kind::Ext4
        }
    }

    /// Returns the label, if there is one.
    pub fn label(&self) -> Option<Vec<u8>> {
        let label = self.label.split(|byte| *byte == 0).next()?;
        (!label.is_empty()).then(|| label.to_vec())
    }

    /// Returns the first block of a group.
    pub fn group_start(&self, group: u64) -> u64 {
        self.first_block + group * self.blocks_per_group
    }

    /// Returns the number of blocks of a group.
    pub fn group_blocks(&self, group: u64) -> u64 {
        self.blocks_per_group.min(self.blocks.saturating_sub(self.group_start(group)))
    }

    /// Returns the number of blocks of the inode table of a group.
    pub fn table_blocks(&self) -> u64 {
        (self.inodes_per_group * self.inode_size as u64).div_ceil(self.block_size)
    }

    /// Returns whether blocks are within the file system.
    pub fn contains(&self, first: u64, count: u64) -> bool {
        first >= self.first_block.max(1)
            && first.checked_add(count).is_some_and(|end| end <= self.blocks)
    }
}

fn damaged(what: &str) -> Error {
    Error::damaged(OFFSET, format!("{what} in the superblock of ext4 cannot be"))
}

/// Offset of the superblock.
pub(super) const OFFSET: u64 = 1024;

/// Size of the superblock.
pub(super) const SIZE: usize = 1024;

const MAGIC: u16 = 0xef53;
const MAX_BLOCK_LOG: u64 = 6;
const MAX_CLUSTER_LOG: u64 = 20;
const EXT2_RO_COMPAT: u32 = ro_compat::SPARSE_SUPER | ro_compat::LARGE_FILE | ro_compat::BTREE_DIR;

/// Maximum number of groups, which are kept in memory. It allows 512 TiB with blocks of 4 KiB.
/// Limit in groups.
const MAX_GROUPS: u64 = 1 << 22;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the bytes of a superblock of 100 groups of 8192 blocks of 1 KiB, with some words changed.
    fn bytes(changes: &[(usize, u32)]) -> Vec<u8> {
        let mut bytes = vec![0; SIZE];
        let words = [(0, 6400), (4, 100 * 8192 + 1), (0x14, 1), (0x20, 8192), (0x24, 8192)];
        let rest = [(0x28, 64), (0x38, u32::from(MAGIC)), (0x4c, 1), (0x58, 256)];
        for (at, word) in words.iter().chain(&rest).chain(changes) {
            bytes[*at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub fn superblock(changes: &[(usize, u32)]) -> Superblock {
        Superblock::parse(&bytes(changes)).unwrap().unwrap()
    }

    #[test]
    fn fields_that_cannot_be() {
        assert!(Superblock::parse(&bytes(&[(0x38, 0)])).unwrap().is_none());
        let changes = [
            (0x18, 7),           // 128 KiB
            (0x20, 0),           // no blocks in a group
            (0x20, 8193),        // more blocks than bits
            (0x28, 0),           // no inodes in a group
            (0, 6401),           // more inodes than in all groups
            (4, 1),              // no blocks after the first
            (0x14, 2),           // the first block
            (0x58, 192),         // the size of inodes
            (0x58, 2048),        // larger than a block
            (0x60, 0x80),        // wide descriptors of 0 bytes
            (0x60, 1),           // compression
            (0x60, 0x4000_0000), // a feature of the future
        ];
        for change in changes {
            assert!(Superblock::parse(&bytes(&[change])).is_err(), "{change:?}");
        }
    }

    #[test]
    fn kinds() {
        let kind = |compat, incompat, ro_compat| {
            superblock(&[(0x5c, compat), (0x60, incompat), (0x64, ro_compat)]).kind()
        };
        assert_eq!(kind(0, 2, 7), Kind::Ext2);
        assert_eq!(kind(4, 6, 7), Kind::Ext3);
        assert_eq!(kind(0, 0x40, 7), Kind::Ext4);
        assert_eq!(kind(4, 2, 0x400), Kind::Ext4);
        assert_eq!(kind(0, 8, 0), Kind::Jbd);
    }
}
