//! Which groups hold copies of the superblock and of the group descriptors, and where.

use std::ops::Range;

use super::superblock::{Superblock, compat, incompat, ro_compat};

/// The blocks at the beginning of a group that describe the whole file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub superblock: Option<u64>,
    /// Blocks of group descriptors.
    pub descriptors: Range<u64>,
    /// The place of the first of these blocks among all descriptor blocks.
    pub first_descriptor: u64,
    /// Blocks into which the descriptors can grow.
    pub reserved: Range<u64>,
}

impl Superblock {
    /// Returns the number of group descriptors in a block.
    pub fn descriptors_per_block(&self) -> u64 {
        self.block_size / self.descriptor_size as u64
    }

    /// Returns the number of blocks with group descriptors.
    pub fn descriptor_blocks(&self) -> u64 {
        self.groups.div_ceil(self.descriptors_per_block())
    }

    /// Returns the number of descriptor blocks after each superblock.
    fn contiguous_descriptor_blocks(&self) -> u64 {
        match self.incompat(incompat::META_BG) {
            true => self.first_meta_bg.min(self.descriptor_blocks()),
            false => self.descriptor_blocks(),
        }
    }

    /// Returns whether a group begins with a superblock.
    fn has_superblock(&self, group: u64) -> bool {
        if group == 0 {
            return true;
        }
        if self.compat(compat::SPARSE_SUPER2) {
            return self.backup_groups.contains(&group);
        }
        if group == 1 || !self.ro_compat(ro_compat::SPARSE_SUPER) {
            return true;
        }
        [3, 5, 7].iter().any(|base| {
            let mut power = *base;
            while power < group {
                power *= base;
            }
            power == group
        })
    }

    /// Returns the first blocks of a group.
    pub fn head(&self, group: u64) -> Head {
        let mut next = self.group_start(group);
        if next == 0 && self.block_size == 1024 {
            // Block 0 is the boot block, also with clusters, which begin there.
            next = 1;
        }
        let superblock = self.has_superblock(group).then_some(next);
        next += u64::from(superblock.is_some());
        let per_block = self.descriptors_per_block();
        let contiguous = self.contiguous_descriptor_blocks();
        let is_meta = self.incompat(incompat::META_BG) && group / per_block >= contiguous;
        let (count, first_descriptor) = if is_meta {
            let index = group % per_block;
            (u64::from(index <= 1 || index == per_block - 1), group / per_block)
        } else {
            (if superblock.is_some() { contiguous } else { 0 }, 0)
        };
        let end = next + count;
        let has_reserved = superblock.is_some() && !self.incompat(incompat::META_BG);
        let reserved = if has_reserved { self.reserved_descriptor_blocks } else { 0 };
        Head { superblock, descriptors: next..end, first_descriptor, reserved: end..end + reserved }
    }

    /// Returns the place of a block of group descriptors, not of a copy.
    pub fn descriptor_block(&self, index: u64) -> u64 {
        if index < self.contiguous_descriptor_blocks() {
            return self.head(0).descriptors.start + index;
        }
        self.head(index * self.descriptors_per_block()).descriptors.start
    }
}

#[cfg(test)]
mod tests {
    use super::super::superblock::tests::superblock;
    use super::*;

    fn with_superblock(superblock: &Superblock) -> Vec<u64> {
        (0..superblock.groups).filter(|group| superblock.has_superblock(*group)).collect()
    }

    #[test]
    fn copies_of_the_superblock() {
        let sparse = superblock(&[(0x64, ro_compat::SPARSE_SUPER)]);
        assert_eq!(with_superblock(&sparse), [0, 1, 3, 5, 7, 9, 25, 27, 49, 81]);
        assert_eq!(with_superblock(&superblock(&[])).len(), 100);
        let two = superblock(&[(0x5c, compat::SPARSE_SUPER2), (0x24c, 1), (0x250, 99)]);
        assert_eq!(with_superblock(&two), [0, 1, 99]);
    }

    #[test]
    fn descriptors_of_meta_groups() {
        let meta = superblock(&[(0x60, incompat::META_BG), (0x104, 1)]);
        let head = meta.head(0);
        assert_eq!((head.superblock, head.descriptors, head.reserved), (Some(1), 2..3, 3..3));
        // 32 descriptors of 32 bytes are a block. Descriptors of groups 32 to 63 are in 32, 33 and 63.
        let start = meta.group_start(33);
        assert_eq!(meta.head(33).descriptors, start + 1..start + 2);
        assert_eq!(meta.descriptor_block(1), meta.group_start(32) + 1);
        assert!(meta.head(34).descriptors.is_empty());
        assert_eq!(meta.head(63).first_descriptor, 1);
    }
}
