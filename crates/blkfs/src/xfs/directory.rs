//! Directories: names in inodes, and blocks of entries, of hashes and of free space.

use super::bmap::Mapping;
use super::inode::Inode;
use super::structure::{DIRECTORY_DATA_V4, DIRECTORY_DATA_V5, NODE_V4, NODE_V5, Structure};
use super::superblock::Block;
use super::verify::Subject;
use super::walk::{Place, Walk};
use crate::bytes::{be16_at, be32_at, be64_at, u8_at};
use crate::error::Result;
use crate::visitor::{Entry, EntryKind, ObjectId, Owner, ProblemKind};

/// A directory whose blocks are being read.
struct Blocks {
    object: ObjectId,
    /// Size of a directory block in bytes and in blocks.
    size: usize,
    per_block: u64,
    /// Blocks of which only a part was found yet.
    partial: Option<Partial>,
    bad: usize,
}

/// The beginning of a directory block that consists of several extents.
struct Partial {
    offset: u64,
    first: Block,
    bytes: Vec<u8>,
}

impl<'a> Walk<'a> {
    pub fn directory(&mut self, inode: &Inode<'_>) -> Result<()> {
        if inode.data.is_local() {
            self.short_directory(inode);
            return Ok(());
        }
        let size = self.superblock().directory_block_size();
        let per_block = 1 << self.superblock().directory_log;
        let object = inode.number;
        let mut blocks = Blocks { object, size, per_block, partial: None, bad: 0 };
        self.mappings(inode, &inode.data, &mut |walk, mapping| {
            let sb = walk.superblock();
            let (offset, length) = (sb.offset(mapping.first), sb.bytes(mapping.count));
            walk.extent(offset, length, Owner::Directory { object });
            if !walk.wanted.checks && !walk.wanted.names {
                return Ok(());
            }
            if !walk.visit_mapping(inode.place(), mapping) || blocks.bad > MAX_BAD {
                return Ok(());
            }
            walk.directory_mapping(&mut blocks, mapping)
        })?;
        self.check_no_partial(&mut blocks);
        if blocks.bad > MAX_BAD {
            let reason = "too many damaged blocks, the rest was not read".to_owned();
            self.problem(ProblemKind::Skipped, inode.place(), reason);
        }
        Ok(())
    }

    /// Reports a directory block of which a part is missing.
    fn check_no_partial(&mut self, blocks: &mut Blocks) {
        if let Some(partial) = blocks.partial.take() {
            let offset = self.superblock().offset(partial.first);
            let structure = Structure::DirectoryData.name();
            let place = Place { structure, offset, object: Some(blocks.object) };
            self.damaged(place, "a directory block with a hole");
        }
    }

    /// Reads the directory blocks of a mapping, and the part of one at its beginning and its end.
    fn directory_mapping(&mut self, blocks: &mut Blocks, mapping: Mapping) -> Result<()> {
        let mut rest = mapping;
        while rest.count > 0 && blocks.bad <= MAX_BAD {
            let per_block = blocks.per_block;
            let is_next = blocks.partial.as_ref().is_some_and(|partial| {
                let have = (partial.bytes.len() as u64) >> self.superblock().block_log;
                partial.offset + have == rest.offset
            });
            if !is_next {
                self.check_no_partial(blocks);
            }
            let whole = rest.count / per_block;
            let taken = if !is_next && rest.offset.is_multiple_of(per_block) && whole > 0 {
                let batch = (BATCH / blocks.size).max(1) as u64;
                let count = whole.min(batch);
                self.whole_blocks(blocks, rest.offset, rest.first, count)?;
                count * per_block
            } else {
                self.part_of_block(blocks, rest)?
            };
            rest.offset += taken;
            rest.first += taken;
            rest.count -= taken;
        }
        Ok(())
    }

    fn whole_blocks(
        &mut self,
        blocks: &mut Blocks,
        offset: u64,
        first: Block,
        count: u64,
    ) -> Result<()> {
        let mut buffer = self.buffer(blocks.size * count as usize);
        let at = self.superblock().offset(first);
        let structure = Structure::DirectoryData.name();
        let place = Place { structure, offset: at, object: Some(blocks.object) };
        if self.read(place, &mut buffer)? {
            for (index, bytes) in buffer.chunks_exact_mut(blocks.size).enumerate() {
                let skip = index as u64 * blocks.per_block;
                self.directory_block(blocks, offset + skip, first + skip, bytes);
            }
        }
        self.give_back(buffer);
        Ok(())
    }

    /// Adds the beginning of `rest` to a directory block in several parts. Returns the number of blocks that were taken.
    fn part_of_block(&mut self, blocks: &mut Blocks, rest: Mapping) -> Result<u64> {
        let per_block = blocks.per_block;
        let within = rest.offset % per_block;
        let count = rest.count.min(per_block - within);
        let place = Place {
            structure: Structure::DirectoryData.name(),
            offset: self.superblock().offset(rest.first),
            object: Some(blocks.object),
        };
        if within > 0 && blocks.partial.is_none() {
            self.damaged(place, "a directory block with a hole");
            return Ok(count);
        }
        let mut partial = blocks.partial.take().unwrap_or_else(|| Partial {
            offset: rest.offset,
            first: rest.first,
            bytes: Vec::with_capacity(blocks.size),
        });
        let start = partial.bytes.len();
        partial.bytes.resize(start + self.superblock().bytes(count) as usize, 0);
        if !self.read(place, &mut partial.bytes[start..])? {
            return Ok(count);
        }
        if partial.bytes.len() < blocks.size {
            blocks.partial = Some(partial);
        } else {
            self.directory_block(blocks, partial.offset, partial.first, &mut partial.bytes);
        }
        Ok(count)
    }

    /// Verifies a directory block, and reports the names in it.
    fn directory_block(
        &mut self,
        blocks: &mut Blocks,
        offset: u64,
        first: Block,
        bytes: &mut [u8],
    ) {
        let at = self.superblock().bytes(offset);
        let is_v5 = self.superblock().is_v5;
        let structure = if at < LEAVES {
            Structure::DirectoryData
        } else if at >= FREE {
            Structure::DirectoryFree
        } else {
            let magic = be16_at(bytes, 8).map_or(0, u64::from);
            let node = if is_v5 { NODE_V5 } else { NODE_V4 };
            if magic == node { Structure::DirectoryNode } else { Structure::DirectoryLeaf }
        };
        let object = blocks.object;
        let offset = self.superblock().offset(first);
        let subject = Subject { structure, offset, owner: object, object: Some(object) };
        let reports = self.reports();
        if self.verify(subject, bytes)
            && structure == Structure::DirectoryData
            && (self.wanted.names || !is_v5)
        {
            self.entries(subject.place(), object, bytes);
        }
        blocks.bad += usize::from(reports != self.reports());
    }

    /// Reports the names in a data block.
    fn entries(&mut self, place: Place, parent: ObjectId, bytes: &[u8]) {
        let is_v5 = self.superblock().is_v5;
        let magic = be32_at(bytes, 0).map_or(0, u64::from);
        let is_single = magic == if is_v5 { DIRECTORY_DATA_V5[0] } else { DIRECTORY_DATA_V4[0] };
        let mut end = bytes.len();
        if is_single {
            // The hashes and their number are at the end.
            let count = be32_at(bytes, end - 8).unwrap_or(0) as usize;
            end = (end - 8).saturating_sub(count.saturating_mul(8));
        }
        let mut at = if is_v5 { 64 } else { 16 };
        while at < end {
            match self.entry(parent, &bytes[at..end]) {
                Some(length) => at += length,
                None => {
                    self.damaged(place, format!("an impossible entry at byte {at}"));
                    return;
                }
            }
        }
    }

    /// Reports the name at the beginning of `bytes`. Returns the number of bytes to the next one.
    fn entry(&mut self, parent: ObjectId, bytes: &[u8]) -> Option<usize> {
        if be16_at(bytes, 0)? == UNUSED {
            let length = usize::from(be16_at(bytes, 2)?);
            return (length >= 8 && length.is_multiple_of(8) && length <= bytes.len())
                .then_some(length);
        }
        let (object, length) = (be64_at(bytes, 0)?, usize::from(u8_at(bytes, 8)?));
        let name = bytes.get(9..9 + length)?;
        let file_type = usize::from(self.superblock().has_file_types);
        let total = (9 + length + file_type + 2).next_multiple_of(8);
        if name.is_empty() || total > bytes.len() {
            return None;
        }
        self.name(parent, object, name);
        Some(total)
    }

    fn name(&mut self, parent: ObjectId, object: ObjectId, name: &[u8]) {
        if self.wanted.names && name != b"." && name != b".." {
            self.visitor.entry(Entry { parent, object, name, kind: EntryKind::Child });
        }
    }

    /// Reports the names that are in the inode itself.
    fn short_directory(&mut self, inode: &Inode<'_>) {
        if !self.wanted.names && self.superblock().is_v5 {
            return;
        }
        if self.short_entries(inode).is_none() {
            self.damaged(inode.place(), "impossible entries in the inode");
        }
    }

    fn short_entries(&mut self, inode: &Inode<'_>) -> Option<()> {
        let bytes = inode.data.bytes;
        let bytes = bytes.get(..usize::try_from(inode.size).ok()?)?;
        let is_wide = u8_at(bytes, 1)? > 0;
        let width = if is_wide { 8 } else { 4 };
        let file_type = usize::from(self.superblock().has_file_types);
        let mut at = 2 + width;
        for _ in 0..u8_at(bytes, 0)? {
            let length = usize::from(u8_at(bytes, at)?);
            let name = bytes.get(at + 3..at + 3 + length)?;
            let number_at = at + 3 + length + file_type;
            let object = match is_wide {
                true => be64_at(bytes, number_at)?,
                false => be32_at(bytes, number_at)?.into(),
            };
            if name.is_empty() {
                return None;
            }
            self.name(inode.number, object, name);
            at = number_at + width;
        }
        Some(())
    }
}

/// Offsets in a directory at which its leaves and nodes, and the index of free space begin, in bytes.
const LEAVES: u64 = 1 << 35;
const FREE: u64 = 1 << 36;

/// Mark of bytes that are no entry.
const UNUSED: u16 = 0xffff;

/// Size of a read in bytes.
const BATCH: usize = 1 << 20;

/// Maximum number of damaged blocks of a directory before the rest is left out.
/// Limit in blocks.
const MAX_BAD: usize = 256;
