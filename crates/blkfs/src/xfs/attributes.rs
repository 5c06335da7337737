//! Attribute forks: a tree of leaves, which lead to values that are too large for them.

use super::bmap::Mapping;
use super::inode::Inode;
use super::structure::{NODE_V4, NODE_V5, Structure};
use super::superblock::Block;
use super::verify::Subject;
use super::walk::{Place, Walk};
use crate::bytes::{be16_at, be32_at, u8_at};
use crate::error::Result;
use crate::visitor::ProblemKind;

/// A value outside of its leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Value {
    /// The first block of the fork.
    offset: u64,
    /// Number of blocks.
    count: u64,
    length: u64,
    /// Whether it was being written, so that its blocks may have any content.
    is_incomplete: bool,
}

/// The mappings of an attribute fork.
struct Map(Vec<Mapping>);

impl Map {
    /// Returns the block at an offset, and the number of blocks that follow side by side.
    fn find(&self, offset: u64) -> Option<(Block, u64)> {
        let index = self.0.partition_point(|mapping| mapping.offset + mapping.count <= offset);
        let mapping = self.0.get(index)?;
        let skip = offset.checked_sub(mapping.offset)?;
        Some((mapping.first + skip, mapping.count - skip))
    }
}

impl Walk<'_> {
    pub fn attributes(&mut self, inode: &Inode<'_>) -> Result<()> {
        let Some(fork) = inode.attributes.filter(|fork| !fork.is_local()) else { return Ok(()) };
        if !fork.is_tree() && fork.extents == 0 {
            return Ok(());
        }
        let mut map = Map(Vec::new());
        let mut is_long = false;
        self.mappings(inode, &fork, &mut |_, mapping| {
            is_long |= map.0.len() == MAX_EXTENTS;
            if !is_long {
                map.0.push(mapping);
            }
            Ok(())
        })?;
        if is_long {
            let reason = format!("more than {MAX_EXTENTS} extents of attributes");
            self.problem(ProblemKind::Skipped, inode.place(), reason);
        }
        let mut values = self.attribute_tree(inode, &map)?;
        self.separate(inode, &mut values);
        for value in &values {
            self.value(inode, &map, value)?;
        }
        self.attribute_extents(inode, &map, &values);
        Ok(())
    }

    /// Sorts values, and removes those that share blocks with one before.
    fn separate(&mut self, inode: &Inode<'_>, values: &mut Vec<Value>) {
        values.sort_unstable();
        let (before, mut end) = (values.len(), 0);
        values.retain(|value| {
            let is_apart = value.offset >= end;
            end = end.max(value.offset + value.count);
            is_apart
        });
        if values.len() < before {
            self.damaged(inode.place(), "values of attributes that share blocks");
        }
    }

    /// Reads the nodes and leaves. Returns the values outside of them.
    fn attribute_tree(&mut self, inode: &Inode<'_>, map: &Map) -> Result<Vec<Value>> {
        let mut values = Vec::new();
        // Each block is read once, so this ends.
        let mut offsets = vec![0];
        let mut buffer = self.buffer(self.superblock().block_size as usize);
        while let Some(offset) = offsets.pop() {
            let Some((block, _)) = map.find(offset) else {
                self.damaged(inode.place(), format!("no attribute block {offset}"));
                continue;
            };
            let place = Place {
                structure: Structure::AttributeLeaf.name(),
                offset: self.superblock().offset(block),
                object: Some(inode.number),
            };
            if !self.visit_mapping(place, Mapping { offset, first: block, count: 1 })
                || !self.read(place, &mut buffer)?
            {
                continue;
            }
            let magic = be16_at(&buffer, 8).map_or(0, u64::from);
            let is_node = magic == if self.superblock().is_v5 { NODE_V5 } else { NODE_V4 };
            let structure =
                if is_node { Structure::AttributeNode } else { Structure::AttributeLeaf };
            let (owner, object) = (inode.number, Some(inode.number));
            let subject = Subject { structure, offset: place.offset, owner, object };
            if !self.verify(subject, &mut buffer) {
                continue;
            }
            let is_possible = match is_node {
                true => self.node_children(&buffer, &mut offsets),
                false => self.leaf_values(&buffer, &mut values),
            };
            if is_possible.is_none() {
                self.damaged(subject.place(), "impossible entries");
            }
            if values.len() > MAX_VALUES {
                let reason = format!("more than {MAX_VALUES} values");
                self.problem(ProblemKind::Skipped, place, reason);
                values.truncate(MAX_VALUES);
                break;
            }
        }
        self.give_back(buffer);
        Ok(values)
    }

    fn node_children(&self, bytes: &[u8], offsets: &mut Vec<u64>) -> Option<()> {
        let (count_at, header) = if self.superblock().is_v5 { (56, 64) } else { (12, 16) };
        let count = usize::from(be16_at(bytes, count_at)?);
        let entries = bytes.get(header..header + count * 8)?;
        // The last is read first, so that the order is the leaves'.
        for entry in entries.chunks_exact(8).rev() {
            offsets.push(be32_at(entry, 4)?.into());
        }
        Some(())
    }

    fn leaf_values(&self, bytes: &[u8], values: &mut Vec<Value>) -> Option<()> {
        let is_v5 = self.superblock().is_v5;
        let (count_at, header) = if is_v5 { (56, 80) } else { (12, 32) };
        let count = usize::from(be16_at(bytes, count_at)?);
        let entries = bytes.get(header..header + count * 8)?;
        let block = u64::from(self.superblock().block_size);
        let room = if is_v5 { block - VALUE_HEADER as u64 } else { block };
        for entry in entries.chunks_exact(8) {
            let (at, flags) = (usize::from(be16_at(entry, 4)?), u8_at(entry, 6)?);
            if flags & LOCAL != 0 {
                continue;
            }
            let (offset, length) = (be32_at(bytes, at)?, be32_at(bytes, at + 4)?);
            if length > 0 && offset > 0 {
                let length = u64::from(length);
                let count = length.div_ceil(room);
                let is_incomplete = flags & INCOMPLETE != 0;
                values.push(Value { offset: offset.into(), count, length, is_incomplete });
            }
        }
        Some(())
    }

    /// Verifies the blocks of a value.
    fn value(&mut self, inode: &Inode<'_>, map: &Map, value: &Value) -> Result<()> {
        if !self.superblock().is_v5 || !self.wanted.checks || value.is_incomplete {
            return Ok(());
        }
        let block_size = self.superblock().block_size as usize;
        let mut step = 0;
        while step < value.count {
            let offset = value.offset + step;
            let Some((first, room)) = map.find(offset) else {
                self.damaged(inode.place(), format!("no attribute block {offset}"));
                return Ok(());
            };
            let count = room.min(value.count - step).min(BATCH);
            let mapping = Mapping { offset, first, count };
            if !self.visit_mapping(inode.place(), mapping) {
                return Ok(());
            }
            let place = Place {
                structure: Structure::AttributeValue.name(),
                offset: self.superblock().offset(first),
                object: Some(inode.number),
            };
            let mut buffer = self.buffer(block_size * count as usize);
            if self.read(place, &mut buffer)? {
                for (index, bytes) in buffer.chunks_exact_mut(block_size).enumerate() {
                    let index = index as u64;
                    let start = (step + index) * (block_size - VALUE_HEADER) as u64;
                    self.value_block(inode, first + index, start, value.length, bytes);
                }
            }
            self.give_back(buffer);
            step += count;
        }
        Ok(())
    }

    /// Verifies a block of a value of `length` bytes that begins at byte `start` of it.
    fn value_block(
        &mut self,
        inode: &Inode<'_>,
        block: Block,
        start: u64,
        length: u64,
        bytes: &mut [u8],
    ) {
        let (structure, offset) = (Structure::AttributeValue, self.superblock().offset(block));
        let (owner, object) = (inode.number, Some(inode.number));
        let subject = Subject { structure, offset, owner, object };
        if !self.verify(subject, bytes) {
            return;
        }
        let (stated, size) = (be32_at(bytes, 4).unwrap_or(0), be32_at(bytes, 8).unwrap_or(0));
        let expected = length.saturating_sub(start).min((bytes.len() - VALUE_HEADER) as u64);
        if u64::from(stated) != start || u64::from(size) != expected {
            let reason = format!("{size} bytes at {stated} instead of {expected} at {start}");
            self.damaged(subject.place(), reason);
        }
    }

    /// Reports the blocks of the fork: blocks of values, and all others.
    fn attribute_extents(&mut self, inode: &Inode<'_>, map: &Map, values: &[Value]) {
        let object = Some(inode.number);
        let (value, tree) = ("attribute value block", "attribute block");
        for mapping in &map.0 {
            let end = mapping.offset + mapping.count;
            let mut at = mapping.offset;
            let first = values.partition_point(|it| it.offset + it.count <= at);
            for it in values[first..].iter().take_while(|it| it.offset < end) {
                let (start, stop) = (it.offset.max(at), (it.offset + it.count).min(end));
                if start > at {
                    self.metadata(mapping.first + (at - mapping.offset), start - at, tree, object);
                }
                if stop > start {
                    let block = mapping.first + (start - mapping.offset);
                    self.metadata(block, stop - start, value, object);
                    at = stop;
                }
            }
            if at < end {
                self.metadata(mapping.first + (at - mapping.offset), end - at, tree, object);
            }
        }
    }
}

/// Size of the header of a block of a value in bytes.
const VALUE_HEADER: usize = 56;

// Flags of an entry.
const LOCAL: u8 = 1;
const INCOMPLETE: u8 = 0x80;

/// Number of blocks in a read.
const BATCH: u64 = 16;

/// Maximum number of extents of an attribute fork.
/// Limit in extents.
const MAX_EXTENTS: usize = 1 << 20;

/// Maximum number of values outside of the leaves of an attribute fork.
/// Limit in values.
const MAX_VALUES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_map() {
        let mapping = |offset, first, count| Mapping { offset, first, count };
        let map = Map(vec![mapping(0, 100, 2), mapping(4, 50, 1), mapping(5, 70, 9)]);
        assert_eq!(map.find(0), Some((100, 2)));
        assert_eq!(map.find(1), Some((101, 1)));
        assert_eq!(map.find(2), None);
        assert_eq!(map.find(5), Some((70, 9)));
        assert_eq!(map.find(14), None);
    }
}
