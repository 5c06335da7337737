//! Items that say which bytes of a file an extent holds.

use crate::bytes::{u8_at, u64_at};

/// A part of a file that lies in an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileExtent {
    /// The extent.
    pub(crate) extent: u64,
    /// Bytes that are stored of it.
    pub(crate) stored: u64,
    pub(crate) is_compressed: bool,
    pub(crate) is_preallocated: bool,
    /// Where in the extent the file's part begins, uncompressed.
    pub(crate) start: u64,
    /// Bytes of the file, uncompressed.
    pub(crate) length: u64,
}

impl FileExtent {
    /// `None` for holes and for data that lies in the item itself.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let kind = u8_at(bytes, 20)?;
        if kind == INLINE {
            return None;
        }
        let file_extent = Self {
            extent: u64_at(bytes, 21)?,
            stored: u64_at(bytes, 29)?,
            is_compressed: u8_at(bytes, 16)? != 0,
            is_preallocated: kind == PREALLOCATED,
            start: u64_at(bytes, 37)?,
            length: u64_at(bytes, 45)?,
        };
        (file_extent.extent != 0).then_some(file_extent)
    }

    /// Where in the file, which has this part at `offset`, the bytes are that lie at `logical`.
    pub(crate) fn offset_of(&self, logical: u64, offset: u64) -> Option<u64> {
        if self.is_compressed {
            // Every byte of a compressed extent may be needed for any of the file.
            return Some(offset);
        }
        let within = logical.checked_sub(self.extent)?.checked_sub(self.start)?;
        (within < self.length).then(|| offset.checked_add(within))?
    }
}

/// Bytes of a file that an item holds or leads to: those that the inode counts. Holes have none.
pub(crate) fn counted_bytes(item: &[u8]) -> Option<u64> {
    match u8_at(item, 20)? {
        INLINE => u64_at(item, 8),
        _ if u64_at(item, 21)? == 0 => Some(0),
        _ => u64_at(item, 45),
    }
}

const INLINE: u8 = 0;
const PREALLOCATED: u8 = 2;
