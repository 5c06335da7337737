//! The inode tables.

use super::bitmaps::Ahead;
use super::inode::{Inode, flags};
use super::map::Role;
use super::superblock::incompat;
use super::walk::Walk;
use crate::error::Result;

impl Walk<'_> {
    /// Reads the inodes of all groups, checks them, and follows those in use.
    pub fn read_inodes(&mut self) -> Result<()> {
        let mut ahead = Ahead::default();
        let mut table = self.take_buffer();
        for number in 0..self.groups.len() {
            let bitmap = self.inode_bitmap(&mut ahead, number)?;
            self.read_table(number as u64, bitmap, &mut table)?;
        }
        self.give_buffer(table);
        Ok(())
    }

    fn read_table(&mut self, group: u64, bitmap: Option<&[u8]>, table: &mut Vec<u8>) -> Result<()> {
        let superblock = self.superblock;
        let start = self.groups[group as usize].inode_table;
        if start == 0 {
            return Ok(());
        }
        let (per_group, size) = (superblock.inodes_per_group, superblock.inode_size);
        let first = group * per_group + 1;
        let last = superblock.inodes.saturating_sub(first - 1);
        let used = self.groups[group as usize].used_inodes(per_group).min(last);
        let blocks = (used * size as u64).div_ceil(superblock.block_size);
        let mut done = 0;
        while done < blocks {
            let count = (blocks - done).min(self.blocks_per_read());
            table.resize((count * superblock.block_size) as usize, 0);
            if self.read(table, start + done, "inode table", None)? {
                let index = done * superblock.block_size / size as u64;
                for (bytes, index) in table.chunks_exact(size).zip(index..used) {
                    let is_allocated = bitmap.is_some_and(|bitmap| {
                        let byte = bitmap.get(index as usize / 8).copied().unwrap_or_default();
                        byte >> (index % 8) & 1 == 1
                    });
                    self.visit(&Inode { number: first + index, bytes }, is_allocated)?;
                }
                self.add_matched_inodes();
            }
            done += count;
        }
        Ok(())
    }

    fn visit(&mut self, inode: &Inode<'_>, is_allocated: bool) -> Result<()> {
        if inode.is_zero() {
            return Ok(());
        }
        if self.wanted.checks && self.sums.has_metadata() && self.superblock.is_of_linux {
            self.check_inode(inode);
        }
        let is_orphan = inode.links() == 0 && inode.mode() != 0 && is_allocated;
        if inode.links() > 0 || is_orphan || inode.number == BAD_BLOCKS {
            self.follow(inode)?;
        }
        Ok(())
    }

    fn check_inode(&mut self, inode: &Inode<'_>) {
        let Some(check) = self.sums.inode(inode.number, inode.bytes, &mut self.scratch) else {
            return;
        };
        if check.is_match() {
            self.matched_inodes += 1;
            return;
        }
        let offset = self.inode_offset(inode.number);
        self.check(Some(check), "inode", offset, inode.bytes.len() as u64, Some(inode.number));
    }

    fn add_matched_inodes(&mut self) {
        let count = std::mem::take(&mut self.matched_inodes);
        if count > 0 {
            self.matched("inode", count, count * self.superblock.inode_size as u64);
        }
    }

    /// Follows what an inode in use refers to.
    pub fn follow(&mut self, inode: &Inode<'_>) -> Result<()> {
        let role = Role::new(inode, self.superblock);
        let attributes = inode.attribute_block(self.superblock.incompat(incompat::SIXTY_FOUR_BIT));
        let has_sums = self.sums.has_metadata();
        if attributes != 0 && (self.wanted.extents || self.wanted.checks && has_sums) {
            self.read_attribute_block(inode, attributes)?;
        }
        let is_directory = role == Role::Directory;
        if inode.has(flags::INLINE_DATA) {
            if is_directory && self.wanted.names {
                self.inline_directory(inode);
            }
            return Ok(());
        }
        let has_checks = match role {
            Role::Directory | Role::Orphans => true,
            // The extents in the inode itself have no checksum but the inode's.
            _ => inode.has(flags::EXTENTS) && inode.block().get(6..8) != Some(&[0, 0]),
        };
        let is_wanted = self.wanted.extents
            || self.wanted.checks && has_sums && has_checks
            || self.wanted.names && is_directory;
        match role {
            Role::Nothing => Ok(()),
            _ if is_wanted => self.map(inode, role),
            _ => Ok(()),
        }
    }

    /// Returns the offset of an inode in the file system.
    pub fn inode_offset(&self, number: u64) -> u64 {
        let index = number.saturating_sub(1);
        let group = (index / self.superblock.inodes_per_group) as usize;
        let table = self.groups.get(group).map_or(0, |group| group.inode_table);
        let within = index % self.superblock.inodes_per_group * self.superblock.inode_size as u64;
        table * self.superblock.block_size + within
    }
}

const BAD_BLOCKS: u64 = 1;
