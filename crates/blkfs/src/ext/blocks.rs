//! Reads blocks as they are after the journal was replayed.

use crate::error::Result;
use crate::volume::Volume;

/// The blocks of a file system.
#[derive(Clone)]
pub(super) struct Blocks {
    pub volume: Volume,
    pub block_size: u64,
    /// Sorted by block, each of which there is once.
    patches: Vec<Patch>,
}

/// A block whose newest content is in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Patch {
    pub block: u64,
    /// Offset of the content in the volume.
    pub offset: u64,
    /// Whether the first four bytes, the journal's own magic number, were replaced by zeros.
    pub is_escaped: bool,
}

impl Blocks {
    pub const fn new(volume: Volume, block_size: u64) -> Self {
        Self { volume, block_size, patches: Vec::new() }
    }

    /// Lets content of the journal replace what is in place.
    pub fn replace(&mut self, patches: Vec<Patch>) {
        self.patches = patches;
    }

    /// Fills `bytes`, some blocks or the beginning of one.
    pub fn read_into(&self, bytes: &mut [u8], block: u64) -> Result<()> {
        let offset = block.saturating_mul(self.block_size);
        self.volume.read_into(bytes, offset)?;
        let end = block.saturating_add((bytes.len() as u64).div_ceil(self.block_size));
        let first = self.patches.partition_point(|patch| patch.block < block);
        for patch in self.patches[first..].iter().take_while(|patch| patch.block < end) {
            let at = ((patch.block - block) * self.block_size) as usize;
            let length = (bytes.len() - at).min(self.block_size as usize);
            let part = &mut bytes[at..at + length];
            self.volume.read_into(part, patch.offset)?;
            if patch.is_escaped {
                part.iter_mut().zip(MAGIC.to_be_bytes()).for_each(|(to, from)| *to = from);
            }
        }
        Ok(())
    }

    /// Returns where the content of a block is if it is in the journal.
    pub fn journal_offset(&self, block: u64) -> Option<u64> {
        let index = self.patches.binary_search_by_key(&block, |patch| patch.block).ok()?;
        Some(self.patches[index].offset)
    }
}

/// Magic number of blocks of the journal.
pub(super) const MAGIC: u32 = 0xc03b_3998;
