//! Extended attributes: their blocks, and the content of small files in them.

use super::inode::Inode;
use super::walk::Walk;
use crate::bytes::{le16_at, le32_at, u8_at};
use crate::error::Result;
use crate::visitor::Owner;

impl Walk<'_> {
    /// Reads the block of attributes of an inode, unless another inode with the same one came first.
    pub fn read_attribute_block(&mut self, inode: &Inode<'_>, block: u64) -> Result<()> {
        let (structure, object) = ("xattr block", Some(inode.number));
        let offset = block.saturating_mul(self.superblock.block_size);
        if !self.superblock.contains(block, 1) {
            let reason = format!("block {block} does not exist");
            self.damaged(structure, offset, object, reason);
            return Ok(());
        }
        if !self.seen.attributes.insert(block) {
            return Ok(());
        }
        self.check_use(block, structure, object);
        let mut buffer = self.take_buffer();
        buffer.resize(self.superblock.block_size as usize, 0);
        let is_read = self.read(&mut buffer, block, structure, object)?;
        let is_shared = is_read && le32_at(&buffer, 4).is_some_and(|users| users > 1);
        let object = object.filter(|_| !is_shared);
        self.emit_blocks(block, 1, Owner::Metadata { structure, object });
        if is_read && self.wanted.checks {
            let check = self.sums.attributes(block, &buffer);
            self.check(check, structure, offset, self.superblock.block_size, object);
        }
        self.give_buffer(buffer);
        Ok(())
    }
}

/// Returns the value of the attribute with the content that does not fit into the map of an inode.
pub(super) fn inline_value<'a>(inode: &Inode<'a>) -> Option<&'a [u8]> {
    let rest = inode.rest();
    if le32_at(rest, 0) != Some(MAGIC) {
        return None;
    }
    let first = rest.get(4..)?;
    let mut entry = first;
    while le32_at(entry, 0)? != 0 {
        let name_length = usize::from(u8_at(entry, 0)?);
        let name = entry.get(16..16 + name_length)?;
        if u8_at(entry, 1)? == SYSTEM && name == b"data" {
            let start = usize::from(le16_at(entry, 2)?);
            let length = usize::try_from(le32_at(entry, 8)?).ok()?;
            return first.get(start..start.checked_add(length)?);
        }
        entry = entry.get((16 + name_length).next_multiple_of(4)..)?;
    }
    None
}

const MAGIC: u32 = 0xea02_0000;

/// Number of the prefix `system.` of names.
const SYSTEM: u8 = 7;
