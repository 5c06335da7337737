//! Maps with indirect blocks.

use super::inode::Inode;
use super::map::File;
use super::run::Run;
use super::walk::Walk;
use crate::bytes::le32_at;
use crate::error::Result;
use crate::visitor::Owner;

impl Walk<'_> {
    /// Follows the map in an inode: 12 blocks, and one block each of 1 to 3 levels of pointers.
    pub fn map_indirect(&mut self, file: &mut File, inode: &Inode<'_>) -> Result<()> {
        let pointers = |range: std::ops::Range<usize>| inode.block().get(range).unwrap_or_default();
        self.pointers(file, pointers(0..48), 0, 0, 0)?;
        let mut logical = 12;
        for level in 1..=3 {
            let at = 44 + 4 * level as usize;
            self.pointers(file, pointers(at..at + 4), level, logical, 0)?;
            logical += self.covered(level);
        }
        Ok(())
    }

    /// Returns the number of blocks of the file that a pointer at a level covers.
    const fn covered(&self, level: u32) -> u64 {
        (self.superblock.block_size / 4).pow(level)
    }

    /// Follows pointers, the first of which is for the block `logical` of the file.
    fn pointers(
        &mut self,
        file: &mut File,
        bytes: &[u8],
        level: u32,
        logical: u64,
        place: u64,
    ) -> Result<()> {
        let covered = self.covered(level);
        for (index, pointer) in bytes.as_chunks::<4>().0.iter().enumerate() {
            let block = u64::from(u32::from_le_bytes(*pointer));
            let logical = logical + index as u64 * covered;
            if block == 0 {
                continue;
            }
            if level > 0 {
                self.indirect_block(file, block, level, logical)?;
            } else if self.superblock.contains(block, 1) {
                let run = Run { logical, physical: block, count: 1, is_written: true };
                self.add_run(file, run)?;
            } else {
                self.wild_pointer(file, block, place);
            }
        }
        Ok(())
    }

    fn indirect_block(
        &mut self,
        file: &mut File,
        block: u64,
        level: u32,
        logical: u64,
    ) -> Result<()> {
        let mut buffer = self.take_buffer();
        if self.read_map_block(file, block, "indirect block", &mut buffer)? {
            self.pointers(file, &buffer, level - 1, logical, block)?;
        }
        self.give_buffer(buffer);
        Ok(())
    }

    fn wild_pointer(&mut self, file: &File, block: u64, place: u64) {
        let (structure, offset) = match place {
            0 => ("inode", self.inode_offset(file.object)),
            place => ("indirect block", place * self.superblock.block_size),
        };
        let reason = format!("block {block} does not exist");
        self.damaged(structure, offset, Some(file.object), reason);
    }

    /// Reports the only block of the resize inode that is not among the reserved GDT blocks.
    pub fn map_resize_inode(&mut self, inode: &Inode<'_>) {
        let block = u64::from(le32_at(inode.block(), 52).unwrap_or_default());
        if self.superblock.contains(block, 1) {
            let structure = "indirect block";
            self.emit_blocks(block, 1, Owner::Metadata { structure, object: Some(inode.number) });
        }
    }
}
