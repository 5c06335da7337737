//! Entries of the block allocation table (BAT), and where a block has its entry.

use super::metadata::Metadata;
use super::units::MIB;

/// The sizes of blocks and chunks. A chunk is the number of blocks that one sector bitmap describes.
#[derive(Clone, Copy)]
pub(super) struct Geometry {
    pub size: u64,
    pub block_size: u64,
    pub sector_size: u64,
    /// Blocks in a chunk.
    pub ratio: u64,
    /// Number of BAT entries in use.
    pub entries: u64,
}

impl Geometry {
    pub fn new(metadata: &Metadata) -> Self {
        let Metadata { size, block_size, sector_size, .. } = *metadata;
        let ratio = SECTORS_PER_BITMAP * sector_size / block_size;
        let blocks = size.div_ceil(block_size);
        let entries = match metadata.locator {
            Some(_) => blocks.div_ceil(ratio) * (ratio + 1),
            // QEMU subtracts 1 from 0 in 32 bits. It makes an image of 0 bytes with a table of that size, and refuses
            // others.
            None if blocks == 0 => u64::from(u32::MAX) / ratio,
            None => blocks + (blocks - 1) / ratio,
        };
        Self { size, block_size, sector_size, ratio, entries }
    }

    /// Returns the index of the entry of a payload block.
    pub fn payload_index(&self, block: u64) -> u64 {
        block + block / self.ratio
    }

    /// Returns the index of the entry of the sector bitmap of a payload block.
    pub fn bitmap_index(&self, block: u64) -> u64 {
        let chunk = block / self.ratio;
        chunk * (self.ratio + 1) + self.ratio
    }

    /// Returns the number of guest bytes in a block. The last one may be cut off.
    pub fn bytes_in(&self, block: u64) -> u64 {
        self.block_size.min(self.size - block * self.block_size)
    }
}

/// The state of a payload block, with its host offset if it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    /// In the parent, or zero if there is none.
    NotPresent,
    /// Zero, unmapped or undefined. Not in the parent in any case.
    Zero,
    Present(u64),
    /// Some sectors are present and the others are in the parent.
    Partial(u64),
}

impl Payload {
    /// Decodes an entry. `None` if its state is not known.
    pub fn decode(entry: u64) -> Option<Self> {
        let offset = entry & OFFSET_MASK;
        match entry & STATE_MASK {
            0 => Some(Self::NotPresent),
            // Undefined, zero and unmapped. 5 is unmapped in version 0.95 of the format.
            1 | 2 | 3 | 5 => Some(Self::Zero),
            6 => Some(Self::Present(offset)),
            7 => Some(Self::Partial(offset)),
            _ => None,
        }
    }
}

/// Returns the host offset of a sector bitmap, if the entry says that it is present.
pub(super) fn decode_bitmap(entry: u64) -> Option<u64> {
    (entry & STATE_MASK == 6).then_some(entry & OFFSET_MASK)
}

/// Size of a sector bitmap in bytes.
pub(super) const BITMAP_SIZE: u64 = MIB;

const SECTORS_PER_BITMAP: u64 = BITMAP_SIZE * 8;
const STATE_MASK: u64 = 7;
const OFFSET_MASK: u64 = !(MIB - 1);
