//! Trees of extents.

use super::checksum::Check;
use super::inode::Inode;
use super::map::File;
use super::run::Run;
use super::walk::Walk;
use crate::bytes::{le16_at, le32_at};
use crate::error::Result;

/// The header of a node.
#[derive(Clone, Copy, Debug)]
struct Header {
    entries: usize,
    capacity: usize,
    depth: u16,
}

impl Header {
    /// Reads the header of a node of the given depth, or of a root.
    fn parse(bytes: &[u8], depth: Option<u16>) -> Option<Self> {
        let header = Self {
            entries: le16_at(bytes, 2)?.into(),
            capacity: le16_at(bytes, 4)?.into(),
            depth: le16_at(bytes, 6)?,
        };
        let is_valid = le16_at(bytes, 0) == Some(MAGIC)
            && header.entries <= header.capacity
            && header.capacity <= (bytes.len() - ENTRY) / ENTRY
            && depth.map_or(header.depth <= MAX_DEPTH, |depth| depth == header.depth);
        is_valid.then_some(header)
    }

    /// Returns the place of the checksum of a node in a block.
    const fn end(&self) -> usize {
        (self.capacity + 1) * ENTRY
    }
}

impl Walk<'_> {
    /// Follows the tree whose root is in an inode.
    pub fn map_extents(&mut self, file: &mut File, inode: &Inode<'_>) -> Result<()> {
        match Header::parse(inode.block(), None) {
            Some(header) => self.extent_node(file, header, inode.block(), 0),
            None => {
                let reason = "the root of the tree of extents is invalid".to_owned();
                self.damaged("inode", self.inode_offset(file.object), Some(file.object), reason);
                Ok(())
            }
        }
    }

    fn extent_node(
        &mut self,
        file: &mut File,
        header: Header,
        bytes: &[u8],
        place: u64,
    ) -> Result<()> {
        for entry in bytes.chunks_exact(ENTRY).skip(1).take(header.entries) {
            let word = |at| u64::from(le32_at(entry, at).unwrap_or_default());
            let half = |at| u64::from(le16_at(entry, at).unwrap_or_default());
            match header.depth {
                0 => {
                    let length = half(4);
                    let is_written = length <= MAX_LENGTH;
                    let count = if is_written { length } else { length - MAX_LENGTH };
                    let physical = word(8) | half(6) << 32;
                    let run = Run { logical: word(0), physical, count, is_written };
                    self.extent(file, run, place)?;
                }
                depth => self.extent_block(file, word(4) | half(8) << 32, depth - 1)?,
            }
        }
        Ok(())
    }

    fn extent(&mut self, file: &mut File, run: Run, place: u64) -> Result<()> {
        let is_valid = run.count > 0
            && run.logical >= file.next
            && self.superblock.contains(run.physical, run.count);
        if is_valid {
            return self.add_run(file, run);
        }
        let offset = match place {
            0 => self.inode_offset(file.object),
            block => block * self.superblock.block_size,
        };
        let Run { logical, physical, count, .. } = run;
        let reason =
            format!("an extent of {count} blocks at {physical} for block {logical} of the file");
        let structure = if place == 0 { "inode" } else { "extent block" };
        self.damaged(structure, offset, Some(file.object), reason);
        Ok(())
    }

    fn extent_block(&mut self, file: &mut File, block: u64, depth: u16) -> Result<()> {
        let mut buffer = self.take_buffer();
        if self.read_map_block(file, block, "extent block", &mut buffer)? {
            let (offset, object) = (block * self.superblock.block_size, Some(file.object));
            let header = Header::parse(&buffer, Some(depth));
            if let Some(header) = header {
                if self.wanted.checks && self.sums.has_metadata() {
                    let check = Check::behind(file.seed, &buffer, header.end());
                    self.check(check, "extent block", offset, self.superblock.block_size, object);
                }
                self.extent_node(file, header, &buffer, block)?;
            } else {
                let reason = format!("block {block} is no node of depth {depth}");
                self.damaged("extent block", offset, object, reason);
            }
        }
        self.give_buffer(buffer);
        Ok(())
    }
}

const MAGIC: u16 = 0xf30a;

/// Size of a header, and of an entry.
const ENTRY: usize = 12;

/// Maximum depth of a tree of extents.
/// Limit in levels.
const MAX_DEPTH: u16 = 5;

/// Maximum number of blocks of an extent. More means that it was not written.
const MAX_LENGTH: u64 = 32768;
