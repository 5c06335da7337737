//! Inodes: the chunks that hold them, their fields, and what their forks lead to.

use super::fork::Fork;
use super::group::Group;
use super::structure::Structure;
use super::verify::Subject;
use super::walk::{Place, Walk};
use crate::bytes::{be16_at, be32_at, be64_at, u8_at};
use crate::error::Result;
use crate::visitor::{ObjectId, Owner};

/// An inode in use.
#[derive(Clone, Copy, Debug)]
pub struct Inode<'b> {
    pub number: ObjectId,
    /// Offset in the file system in bytes.
    pub offset: u64,
    pub mode: u16,
    pub size: u64,
    pub is_realtime: bool,
    pub data: Fork<'b>,
    pub attributes: Option<Fork<'b>>,
}

impl<'b> Inode<'b> {
    /// Parses an inode. Returns `None` if its attribute fork does not begin within it.
    fn parse(number: ObjectId, offset: u64, bytes: &'b [u8]) -> Option<Self> {
        let version = u8_at(bytes, 4)?;
        let core = if version == 3 { 176 } else { 100 };
        let literal = bytes.get(core..)?;
        let fork_offset = usize::from(u8_at(bytes, 82)?) * 8;
        let (data, attributes) = match fork_offset {
            0 => (literal, None),
            at if at < literal.len() => (&literal[..at], Some(&literal[at..])),
            _ => return None,
        };
        let has_large_counters = version == 3 && be64_at(bytes, 120)? & LARGE_COUNTERS != 0;
        let (extents, attribute_extents) = match has_large_counters {
            true => (be64_at(bytes, 24)?, be32_at(bytes, 76)?.into()),
            false => (be32_at(bytes, 76)?.into(), be16_at(bytes, 80)?.into()),
        };
        let fork =
            |bytes, format, extents, is_attributes| Fork { bytes, format, extents, is_attributes };
        let attribute_format = u8_at(bytes, 83)?;
        Some(Self {
            number,
            offset,
            mode: be16_at(bytes, 2)?,
            size: be64_at(bytes, 56)?,
            is_realtime: be16_at(bytes, 90)? & REALTIME != 0,
            data: fork(data, u8_at(bytes, 5)?, extents, false),
            attributes: attributes
                .map(|bytes| fork(bytes, attribute_format, attribute_extents, true)),
        })
    }

    pub fn place(&self) -> Place {
        Place { structure: Structure::Inode.name(), offset: self.offset, object: Some(self.number) }
    }
}

impl Walk<'_> {
    /// Walks over the chunks of inodes that records of an inobt describe. `next` is the first inode after earlier ones.
    pub fn chunks(&mut self, group: &Group, records: &[u8], next: &mut u64) -> Result<()> {
        for record in records.chunks_exact(16) {
            let first = be32_at(record, 0).unwrap_or(0);
            // Chunks come in ascending order, so none is read twice.
            if u64::from(first) < *next {
                let offset = self.superblock().offset(group.first);
                let place = Place { structure: Structure::Inobt.name(), offset, object: None };
                self.damaged(
                    place,
                    format!("a chunk of inodes at {first}, before the end of another"),
                );
                continue;
            }
            *next = u64::from(first) + CHUNK;
            let holes = match self.superblock().has_sparse_inodes {
                true => be16_at(record, 4).unwrap_or(0),
                false => 0,
            };
            self.chunk(group, first, holes, be64_at(record, 8).unwrap_or(0))?;
        }
        Ok(())
    }

    /// Walks over the parts of a chunk that exist. Each bit of `holes` is for four inodes, each of `free` for one.
    fn chunk(&mut self, group: &Group, first: u32, holes: u16, free: u64) -> Result<()> {
        let mut part = 0;
        while part < PARTS {
            let is_hole = |part: u32| holes & (1 << part) != 0;
            let end = (part..PARTS).find(|it| is_hole(*it) != is_hole(part)).unwrap_or(PARTS);
            if !is_hole(part) {
                let (skip, count) = (part * PART, (end - part) * PART);
                self.inodes(group, u64::from(first) + u64::from(skip), count, free >> skip)?;
            }
            part = end;
        }
        Ok(())
    }

    /// Walks over `count` inodes that are contiguous.
    fn inodes(&mut self, group: &Group, first: u64, count: u32, free: u64) -> Result<()> {
        let sb = self.superblock();
        let size = u64::from(sb.inode_size);
        let (start, length) = (first * size, u64::from(count) * size);
        let offset = sb.offset(group.first) + start;
        let place = Place { structure: "inode chunk", offset, object: None };
        if start + length > sb.bytes(group.blocks) {
            self.damaged(place, "a chunk of inodes past the end of its group");
            return Ok(());
        }
        let owner = Owner::Metadata { structure: place.structure, object: None };
        self.extent(offset, length, owner);
        let mut buffer = self.buffer(length as usize);
        if self.read(place, &mut buffer)? {
            for (index, bytes) in buffer.chunks_exact_mut(size as usize).enumerate() {
                let within = first + index as u64;
                let is_free = free & (1 << index) != 0;
                if is_free && !self.wanted.checks {
                    continue;
                }
                let number = sb.inode_number(group.number, within as u32);
                let offset = offset + index as u64 * size;
                let (structure, object) = (Structure::Inode, Some(number));
                let subject = Subject { structure, offset, owner: number, object };
                if self.verify(subject, bytes) {
                    self.inode(subject.place(), number, bytes, is_free)?;
                }
            }
        }
        self.give_back(buffer);
        Ok(())
    }

    /// Walks over the forks of an inode.
    fn inode(&mut self, place: Place, number: u64, bytes: &[u8], is_free: bool) -> Result<()> {
        let is_version = match (self.superblock().is_v5, u8_at(bytes, 4)) {
            (true, version) => version == Some(3),
            (false, version) => matches!(version, Some(1 | 2)),
        };
        if !is_version {
            self.damaged(place, "an inode of another version");
            return Ok(());
        }
        let mode = be16_at(bytes, 2).unwrap_or(0);
        if is_free != (mode == 0) {
            let (inode, tree) = if is_free { ("in use", "free") } else { ("free", "in use") };
            self.damaged(place, format!("an inode that is {inode}, and {tree} in the inobt"));
        }
        if is_free || mode == 0 {
            return Ok(());
        }
        let Some(inode) = Inode::parse(number, place.offset, bytes) else {
            self.damaged(place, "an attribute fork past the end of the inode");
            return Ok(());
        };
        self.content(&inode)?;
        if self.wanted.extents || self.wanted.checks {
            self.attributes(&inode)?;
        }
        Ok(())
    }

    fn content(&mut self, inode: &Inode<'_>) -> Result<()> {
        let sb = self.superblock();
        if inode.number == sb.realtime_bitmap {
            return self.system_file(inode, "realtime bitmap");
        }
        if inode.number == sb.realtime_summary {
            return self.system_file(inode, "realtime summary");
        }
        if sb.quotas.contains(&inode.number) {
            return self.quotas(inode);
        }
        match inode.mode & TYPE {
            DIRECTORY => self.directory(inode),
            REGULAR => self.file(inode),
            SYMLINK => self.symlink(inode),
            _ => Ok(()),
        }
    }

    /// Returns whether a fork without a structure is wanted. Extents in an inode are covered by its CRC.
    pub fn is_fork_wanted(&self, fork: &Fork<'_>) -> bool {
        self.wanted.extents || self.wanted.checks && fork.is_tree()
    }

    fn file(&mut self, inode: &Inode<'_>) -> Result<()> {
        if !self.is_fork_wanted(&inode.data) {
            return Ok(());
        }
        let size = u64::from(self.superblock().block_size);
        self.mappings(inode, &inode.data, &mut |walk, mapping| {
            let start = mapping.offset.saturating_mul(size);
            let (offset, length) = (walk.superblock().offset(mapping.first), mapping.count * size);
            walk.extent(offset, length, Owner::File { object: inode.number, offset: start });
            Ok(())
        })
    }
}

/// Number of inodes in a chunk.
const CHUNK: u64 = 64;

/// Number of parts of a chunk that may be holes, and of inodes in each.
const PARTS: u32 = 16;
const PART: u32 = 4;

// Bits of the mode.
const TYPE: u16 = 0o170_000;
const DIRECTORY: u16 = 0o040_000;
const REGULAR: u16 = 0o100_000;
const SYMLINK: u16 = 0o120_000;

/// Flag: the content is on the realtime device.
const REALTIME: u16 = 1;

/// Second flag: numbers of extents are of 64 and 32 bits.
const LARGE_COUNTERS: u64 = 1 << 4;
