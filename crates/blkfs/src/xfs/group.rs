//! Allocation groups: the four headers, the free list, and the trees of free space, of inodes, of owners and of shares.

use super::btree::{Tree, TreeOwner};
use super::structure::Structure;
use super::superblock::Block;
use super::verify::Subject;
use super::walk::{Place, Walk};
use crate::bytes::be32_at;
use crate::error::Result;
use crate::visitor::{Owner, ProblemKind};

/// An allocation group.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub number: u32,
    pub first: Block,
    pub blocks: u64,
}

impl Group {
    /// Returns one of the group's trees.
    fn tree(&self, structure: Structure, record: usize, key: usize, is_read: bool) -> Tree {
        let Self { number, first, blocks } = *self;
        let owner = TreeOwner::Group { number, first, blocks };
        Tree { structure, record, key, owner, is_read }
    }
}

impl<'a> Walk<'a> {
    /// Walks over all groups.
    pub fn groups(&mut self) -> Result<()> {
        let sb = self.superblock();
        for number in 0..sb.group_count {
            let first = u64::from(number) * u64::from(sb.group_blocks);
            let blocks = u64::from(sb.group_blocks).min(sb.blocks - first);
            let group = Group { number, first, blocks };
            if sb.offset(first) >= self.fs.volume.size() {
                let offset = sb.offset(first);
                let place = Place { structure: "allocation group", offset, object: None };
                let reason = "the groups from here on are past the end of the image".to_owned();
                self.problem(ProblemKind::Damaged, place, reason);
                break;
            }
            self.group(&group)?;
            self.flush()?;
        }
        Ok(())
    }

    fn group(&mut self, group: &Group) -> Result<()> {
        let sb = self.superblock();
        let sector = sb.sector_size as usize;
        let mut headers = self.buffer(4 * sector);
        let offset = sb.offset(group.first);
        let place = Place { structure: "AG header", offset, object: None };
        let is_read = self.read(place, &mut headers)?;
        let blocks = (4 * sector as u64).div_ceil(sb.block_size.into()).min(group.blocks);
        self.visit(group.first, blocks);
        let structures = [Structure::Superblock, Structure::Agf, Structure::Agi, Structure::Agfl];
        let mut is_usable = [false; 4];
        for ((index, structure), bytes) in
            structures.into_iter().enumerate().zip(headers.chunks_exact_mut(sector))
        {
            let offset = offset + (index * sector) as u64;
            let (length, owner) = (sector as u64, u64::from(group.number));
            let metadata = Owner::Metadata { structure: structure.name(), object: None };
            self.extent(offset, length, metadata);
            let subject = Subject { structure, offset, owner, object: None };
            is_usable[index] = is_read && self.verify(subject, bytes);
        }
        let rest = sb.bytes(blocks).saturating_sub(headers.len() as u64);
        let padding = Owner::Metadata { structure: "AG header", object: None };
        self.extent(offset + headers.len() as u64, rest, padding);
        let parts: Vec<&[u8]> = headers.chunks_exact(sector).collect();
        if is_usable[1] {
            self.free_space(group, parts[1], is_usable[3].then_some(parts[3]))?;
        }
        if is_usable[2] {
            self.inode_trees(group, parts[2])?;
        }
        self.give_back(headers);
        Ok(())
    }

    /// Walks over what an AGF leads to. What is owned by files does not need it.
    fn free_space(&mut self, group: &Group, agf: &[u8], agfl: Option<&[u8]>) -> Result<()> {
        if !self.wanted.extents && !self.wanted.checks {
            return Ok(());
        }
        let sb = self.superblock();
        let (first, last) = (group.first, group.blocks);
        let mut free = |walk: &mut Walk<'a>, records: &[u8]| {
            for record in records.chunks_exact(8) {
                let (start, count) = (word(record, 0), word(record, 4));
                if u64::from(start) + u64::from(count) > last {
                    let place = Structure::Bnobt.name();
                    let place = Place { structure: place, offset: sb.offset(first), object: None };
                    walk.damaged(place, format!("a free extent of {count} blocks at {start}"));
                    continue;
                }
                let offset = sb.offset(first + u64::from(start));
                walk.extent(offset, sb.bytes(count.into()), Owner::Free);
            }
            Ok(())
        };
        let bnobt = group.tree(Structure::Bnobt, 8, 8, self.wanted.extents);
        self.rooted(&bnobt, agf, 16, 28, &mut free)?;
        let mut ignored = |_: &mut Walk<'a>, _: &[u8]| Ok(());
        let cntbt = group.tree(Structure::Cntbt, 8, 8, false);
        self.rooted(&cntbt, agf, 20, 32, &mut ignored)?;
        if self.superblock().has_rmapbt {
            let rmapbt = group.tree(Structure::Rmapbt, 24, 40, false);
            self.rooted(&rmapbt, agf, 24, 36, &mut ignored)?;
        }
        if self.superblock().has_refcountbt {
            self.refcounts(group, agf)?;
        }
        if let Some(agfl) = agfl {
            self.free_list(group, agf, agfl);
        }
        Ok(())
    }

    /// Walks over the tree of shared extents, of which some are reserved for copies on write.
    fn refcounts(&mut self, group: &Group, agf: &[u8]) -> Result<()> {
        let (first, last) = (group.first, group.blocks);
        let mut staging = |walk: &mut Walk<'a>, records: &[u8]| {
            for record in records.chunks_exact(12) {
                let (start, count) = (word(record, 0), word(record, 4));
                let start = u64::from(start & !COPY_ON_WRITE);
                if word(record, 0) & COPY_ON_WRITE != 0 && start + u64::from(count) <= last {
                    walk.metadata(first + start, count.into(), "CoW staging extent", None);
                }
            }
            Ok(())
        };
        let tree = group.tree(Structure::Refcountbt, 12, 4, self.wanted.extents);
        self.rooted(&tree, agf, 88, 92, &mut staging)
    }

    fn inode_trees(&mut self, group: &Group, agi: &[u8]) -> Result<()> {
        if self.superblock().has_finobt && (self.wanted.extents || self.wanted.checks) {
            let finobt = group.tree(Structure::Finobt, 16, 4, false);
            self.rooted(&finobt, agi, 328, 332, &mut |_, _| Ok(()))?;
        }
        let inobt = group.tree(Structure::Inobt, 16, 4, true);
        let mut next = 0;
        self.rooted(&inobt, agi, 20, 24, &mut |walk, records| {
            walk.chunks(group, records, &mut next)
        })
    }

    /// Walks over a tree whose root and number of levels a header states.
    fn rooted(
        &mut self,
        tree: &Tree,
        header: &[u8],
        root_at: usize,
        levels_at: usize,
        leaf: &mut super::btree::Leaf<'_, 'a>,
    ) -> Result<()> {
        let (root, levels) = (word(header, root_at), word(header, levels_at));
        let TreeOwner::Group { first, .. } = tree.owner else { return Ok(()) };
        let offset = self.superblock().offset(first);
        let Some(level) = levels.checked_sub(1) else {
            self.damaged(tree.place(offset), "a tree without levels");
            return Ok(());
        };
        self.tree(tree, root.into(), level, offset, leaf)
    }

    /// Reports the blocks that the group keeps for its own trees.
    fn free_list(&mut self, group: &Group, agf: &[u8], agfl: &[u8]) {
        let header = if self.superblock().is_v5 { 36 } else { 0 };
        let list = agfl.get(header..).unwrap_or_default();
        let (first, last, count) = (word(agf, 40), word(agf, 44), word(agf, 48));
        let room = (list.len() / 4) as u32;
        let offset = self.superblock().offset(group.first);
        let place = Place { structure: Structure::Agfl.name(), offset, object: None };
        // Kernels for 32 bits, and some before 4.5, had a list that is one entry shorter.
        let Some(room) = [room, room.saturating_sub(1)]
            .into_iter()
            .find(|room| count == 0 || is_ring(first, last, count, *room))
        else {
            self.damaged(place, format!("{count} entries from {first} to {last} of {room}"));
            return;
        };
        let mut blocks: Vec<u32> =
            (0..count).map(|step| word(list, (((first + step) % room) * 4) as usize)).collect();
        blocks.sort_unstable();
        blocks.dedup();
        for run in blocks.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
            let (start, count) = (u64::from(run[0]), run.len() as u64);
            if start + count > group.blocks {
                self.damaged(place, format!("block {start}, which does not exist"));
            } else {
                self.metadata(group.first + start, count, "free list", None);
            }
        }
    }
}

/// Returns whether a ring of `room` entries has `count` of them from `first` to `last`.
fn is_ring(first: u32, last: u32, count: u32, room: u32) -> bool {
    let is_within = room > 0 && first < room && last < room;
    is_within && (last + room - first) % room + 1 == count
}

/// Returns a number of 32 bits, or 0 past the end.
fn word(bytes: &[u8], at: usize) -> u32 {
    be32_at(bytes, at).unwrap_or(0)
}

/// The bit of a refcount record's first block that marks blocks for copies on write.
const COPY_ON_WRITE: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings() {
        assert!(is_ring(0, 3, 4, 118));
        assert!(is_ring(117, 0, 2, 118));
        assert!(!is_ring(117, 0, 2, 119));
        assert!(!is_ring(0, 0, 0, 0));
        assert!(!is_ring(5, 3, 4, 118));
        assert!(is_ring(1, 0, 118, 118));
    }
}
