//! Reads the group descriptors, and reports the places that they name.

use super::group::Group;
use super::layout::Head;
use super::superblock::{OFFSET, SIZE, incompat};
use super::walk::Walk;
use crate::error::Result;
use crate::visitor::Owner;

impl Walk<'_> {
    /// Returns the number of groups that begin within the volume, which may end before the file system does.
    pub fn present_groups(&self) -> u64 {
        let superblock = self.superblock;
        let blocks = self.blocks.volume.size().div_ceil(superblock.block_size);
        let groups = blocks.saturating_sub(superblock.first_block);
        superblock.groups.min(groups.div_ceil(superblock.blocks_per_group))
    }

    /// Reads all group descriptors, at most those for which the volume has space.
    pub fn read_groups(&mut self) -> Result<()> {
        let superblock = self.superblock;
        let per_block = superblock.descriptors_per_block();
        let possible = self.blocks.volume.size().div_ceil(superblock.block_size);
        let blocks = superblock.descriptor_blocks().min(possible);
        let mut buffer = self.take_buffer();
        let mut index = 0;
        while index < blocks {
            let block = superblock.descriptor_block(index);
            let left = blocks - index;
            let count = (1..left.min(self.blocks_per_read()))
                .find(|next| superblock.descriptor_block(index + next) != block + next)
                .unwrap_or_else(|| left.min(self.blocks_per_read()));
            buffer.resize((count * superblock.block_size) as usize, 0);
            let is_read = self.read(&mut buffer, block, "group descriptors", None)?;
            let groups = superblock.groups.min((index + count) * per_block);
            let first = index * per_block;
            for (group, bytes) in
                (first..groups).zip(buffer.chunks_exact(superblock.descriptor_size))
            {
                let offset = block * superblock.block_size
                    + (group - first) * superblock.descriptor_size as u64;
                let parsed =
                    if is_read { self.read_group(group, bytes, offset) } else { Group::default() };
                self.groups.push(parsed);
            }
            index += count;
        }
        self.give_buffer(buffer);
        Ok(())
    }

    fn read_group(&mut self, number: u64, bytes: &[u8], offset: u64) -> Group {
        if self.wanted.checks {
            let check = self.sums.descriptor(number, bytes);
            self.check(check, "group descriptor", offset, bytes.len() as u64, None);
        }
        let superblock = self.superblock;
        let mut group = Group::parse(bytes, superblock);
        let places = [
            (&mut group.block_bitmap, 1, "block bitmap"),
            (&mut group.inode_bitmap, 1, "inode bitmap"),
            (&mut group.inode_table, superblock.table_blocks(), "inode table"),
        ];
        for (place, count, name) in places {
            if !superblock.contains(*place, count) {
                let reason = format!("the {name} of group {number} is at block {place}");
                self.damaged("group descriptor", offset, None, reason);
                *place = 0;
            }
        }
        group
    }

    /// Drops bitmaps and inode tables in places that others have, so that no block is read for many groups.
    pub fn drop_overlaps(&mut self) {
        let table = self.superblock.table_blocks();
        let mut places: Vec<(u64, u64, usize)> = Vec::new();
        for (index, group) in self.groups.iter().enumerate() {
            let parts =
                [(group.block_bitmap, 1), (group.inode_bitmap, 1), (group.inode_table, table)];
            let parts = parts.iter().filter(|(place, _)| *place != 0);
            places.extend(parts.map(|(place, count)| (*place, place + count, index)));
        }
        places.sort_unstable();
        let mut behind = 0;
        for (place, end, index) in places {
            if place >= behind {
                behind = end;
                continue;
            }
            let group = &mut self.groups[index];
            for field in [&mut group.block_bitmap, &mut group.inode_bitmap, &mut group.inode_table]
            {
                if *field == place {
                    *field = 0;
                }
            }
            let offset = place * self.superblock.block_size;
            let reason =
                format!("block {place} of group {index} belongs to a bitmap or inode table");
            self.damaged("group descriptor", offset, None, reason);
        }
    }

    /// Reports the blocks that do not belong to files.
    pub fn report_groups(&mut self) {
        self.emit(0, OFFSET, metadata("boot block"));
        for group in 0..self.present_groups() {
            self.report_head(&self.superblock.head(group), group);
        }
        for index in 0..self.groups.len() {
            let place = self.groups[index].block_bitmap;
            self.emit_blocks(place, u64::from(place != 0), metadata("block bitmap"));
        }
        for index in 0..self.groups.len() {
            let place = self.groups[index].inode_bitmap;
            self.emit_blocks(place, u64::from(place != 0), metadata("inode bitmap"));
        }
        for index in 0..self.groups.len() {
            let place = self.groups[index].inode_table;
            let count = if place == 0 { 0 } else { self.superblock.table_blocks() };
            self.emit_blocks(place, count, metadata("inode table"));
        }
        let mmp = self.superblock.mmp_block;
        if self.superblock.incompat(incompat::MMP) && self.superblock.contains(mmp, 1) {
            self.emit_blocks(mmp, 1, metadata("MMP block"));
        }
    }

    fn report_head(&mut self, head: &Head, group: u64) {
        let block_size = self.superblock.block_size;
        match head.superblock {
            Some(_) if group == 0 => {
                let end = OFFSET + SIZE as u64;
                let length = end.next_multiple_of(block_size) - OFFSET;
                self.emit(OFFSET, length, metadata("superblock"));
            }
            Some(block) => self.emit_blocks(block, 1, metadata("backup superblock")),
            None => {}
        }
        let blocks = &head.descriptors;
        let is_primary = self.superblock.descriptor_block(head.first_descriptor) == blocks.start;
        let name = if is_primary { "group descriptors" } else { "backup group descriptors" };
        self.emit_blocks(blocks.start, blocks.end - blocks.start, metadata(name));
        let blocks = &head.reserved;
        self.emit_blocks(blocks.start, blocks.end - blocks.start, metadata("reserved GDT blocks"));
    }
}

/// Returns an owner without an object.
pub(super) const fn metadata(structure: &'static str) -> Owner {
    Owner::Metadata { structure, object: None }
}
