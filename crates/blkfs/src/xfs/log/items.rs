//! The blocks that the log's changes concern.

use std::collections::HashSet;

use crate::xfs::superblock::Superblock;

/// Blocks that recovery would write.
#[derive(Debug, Default)]
pub struct Items {
    /// Numbers of blocks of [`UNIT`] bytes.
    units: HashSet<u64>,
    /// Whether there are more than are kept.
    is_partial: bool,
}

impl Items {
    /// Returns whether bytes may belong to one of the blocks.
    pub fn contains(&self, offset: u64, length: u64) -> bool {
        let end = offset.saturating_add(length.max(1));
        self.is_partial
            || (offset / UNIT..end.div_ceil(UNIT)).any(|unit| self.units.contains(&unit))
    }

    pub fn add(&mut self, offset: u64, length: u64) {
        let end = offset.saturating_add(length.min(MAX_LENGTH)).div_ceil(UNIT);
        for unit in offset / UNIT..end {
            if self.units.len() == MAX_UNITS {
                self.is_partial = true;
                return;
            }
            self.units.insert(unit);
        }
    }

    pub fn set_partial(&mut self) {
        self.is_partial = true;
    }

    /// Adds the blocks of the items that begin in the data of a record.
    pub fn scan(&mut self, data: &[u8], is_big_endian: bool, superblock: &Superblock) {
        let mut at = 0usize;
        // Each operation has a header of 12 bytes, whose second word is the length of what follows.
        while let Some(header) = data.get(at..).and_then(|it| it.first_chunk::<12>()) {
            let length = u32::from_be_bytes([header[4], header[5], header[6], header[7]]) as usize;
            let start = at + header.len();
            let Some(body) = data.get(start..).map(|it| &it[..length.min(it.len())]) else {
                return;
            };
            self.item(body, is_big_endian, superblock);
            at = start.saturating_add(length);
        }
    }

    /// Adds the blocks of an item if `body` begins like one. Content that looks like it does little harm.
    fn item(&mut self, body: &[u8], is_big_endian: bool, superblock: &Superblock) {
        let number = |at: usize, width: usize| {
            let bytes = body.get(at..at + width)?;
            let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
            Some(match is_big_endian {
                true => bytes.iter().fold(0, add),
                false => bytes.iter().rev().fold(0, add),
            })
        };
        let sectors = |walk: &mut Self, at: Option<u64>, count: Option<u64>| {
            if let (Some(at), Some(count)) = (at, count) {
                walk.add(at.saturating_mul(512), count.saturating_mul(512));
            }
        };
        match number(0, 2) {
            Some(BUFFER) => sectors(self, number(8, 8), number(6, 2)),
            // Machines with 32 bits leave no gap before the number of the inode.
            Some(INODE) if body.len() == 52 => sectors(self, number(36, 8), number(44, 4)),
            Some(INODE) if body.len() == 56 => sectors(self, number(40, 8), number(48, 4)),
            Some(DQUOT) => sectors(self, number(8, 8), number(16, 4)),
            Some(INODE_CREATE) => self.inode_create(body, superblock),
            _ => {}
        }
    }

    /// Adds the blocks of new inodes. These fields are big-endian everywhere.
    fn inode_create(&mut self, body: &[u8], superblock: &Superblock) {
        use crate::bytes::be32_at;
        if let (Some(group), Some(block), Some(count)) =
            (be32_at(body, 4), be32_at(body, 8), be32_at(body, 20))
            && group < superblock.group_count
        {
            let first = u64::from(group) * u64::from(superblock.group_blocks) + u64::from(block);
            self.add(superblock.offset(first), superblock.bytes(count.into()));
        }
    }
}

/// Unit of what is remembered in bytes.
const UNIT: u64 = 4096;

/// Maximum number of pages of 4 KiB that are remembered.
/// Limit in pages.
const MAX_UNITS: usize = 1 << 20;

/// Maximum length of the blocks of one item.
const MAX_LENGTH: u64 = 1 << 20;

// Types of items.
const INODE: u64 = 0x123b;
const BUFFER: u64 = 0x123c;
const DQUOT: u64 = 0x123d;
const INODE_CREATE: u64 = 0x123f;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_kept_in_units() {
        let mut items = Items::default();
        items.add(10_000, 512);
        assert!(items.contains(8192, 512));
        assert!(items.contains(0, 8193));
        assert!(!items.contains(0, 8192));
        assert!(!items.contains(12_288, 4096));
        assert!(!items.contains(u64::MAX, 1));
        items.add(u64::MAX - 1, u64::MAX);
        items.set_partial();
        assert!(items.contains(0, 1));
    }
}
