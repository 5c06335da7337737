//! A group of blocks and inodes, as its descriptor describes it.

use super::superblock::Superblock;
use crate::bytes::{le16_at, le32_at};

/// A group of blocks and inodes. A place that is outside of the file system is 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Group {
    pub block_bitmap: u64,
    pub inode_bitmap: u64,
    pub inode_table: u64,
    flags: u16,
    /// Number of inodes at the end of the table that were never used.
    unused_inodes: u32,
    pub block_bitmap_sum: u32,
    pub inode_bitmap_sum: u32,
}

impl Group {
    pub fn parse(bytes: &[u8], superblock: &Superblock) -> Self {
        let half = |at| le16_at(bytes, at).unwrap_or_default();
        let word = |at| le32_at(bytes, at).unwrap_or_default();
        let is_wide = bytes.len() >= 64;
        let place = |low, high| {
            u64::from(word(low)) | if is_wide { u64::from(word(high)) << 32 } else { 0 }
        };
        let joined = |low, high| {
            u32::from(half(low)) | if is_wide { u32::from(half(high)) << 16 } else { 0 }
        };
        let has_uninitialised = superblock.has_uninitialised();
        Self {
            block_bitmap: place(0, 0x20),
            inode_bitmap: place(4, 0x24),
            inode_table: place(8, 0x28),
            flags: if has_uninitialised { half(0x12) } else { 0 },
            unused_inodes: if has_uninitialised { joined(0x1c, 0x32) } else { 0 },
            block_bitmap_sum: joined(0x18, 0x38),
            inode_bitmap_sum: joined(0x1a, 0x3a),
        }
    }

    /// Returns whether the inode bitmap and table were never written.
    pub const fn has_no_inodes(&self) -> bool {
        self.flags & INODE_UNINIT != 0
    }

    /// Returns whether the block bitmap was never written.
    pub const fn has_no_block_bitmap(&self) -> bool {
        self.flags & BLOCK_UNINIT != 0
    }

    /// Returns the number of inodes of the table that may have been used.
    pub fn used_inodes(&self, per_group: u64) -> u64 {
        if self.has_no_inodes() { 0 } else { per_group.saturating_sub(self.unused_inodes.into()) }
    }
}

const INODE_UNINIT: u16 = 1;
const BLOCK_UNINIT: u16 = 2;
