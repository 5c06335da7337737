//! Items that map bytes of a file to an extent.

use crate::bytes::{u8_at, u64_at};

/// A part of a file that is in an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileExtent {
    /// Logical address of the extent.
    pub(crate) extent: u64,
    /// Stored size of the extent in bytes.
    pub(crate) stored: u64,
    pub(crate) is_compressed: bool,
    pub(crate) is_preallocated: bool,
    /// Offset of the file's part in the extent, uncompressed.
    pub(crate) start: u64,
    /// Length of the file's part in bytes, uncompressed.
    pub(crate) length: u64,
}

impl FileExtent {
    /// Returns `None` for holes and for inline data.
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

    /// Returns the offset in the file of the bytes at `logical`. `offset` is the offset of this
    /// part.
    pub(crate) fn offset_of(&self, logical: u64, offset: u64) -> Option<u64> {
        if self.is_compressed {
            // Any byte of a compressed extent may be needed for any byte of the file.
            return Some(offset);
        }
        let within = logical.checked_sub(self.extent)?.checked_sub(self.start)?;
        (within < self.length).then(|| offset.checked_add(within))?
    }
}

/// Returns the number of bytes of an item that its inode counts, which is 0 for holes.
pub(crate) fn counted_bytes(item: &[u8]) -> Option<u64> {
    match u8_at(item, 20)? {
        INLINE => u64_at(item, 8),
        _ if u64_at(item, 21)? == 0 => Some(0),
        _ => u64_at(item, 45),
    }
}

const INLINE: u8 = 0;
const PREALLOCATED: u8 = 2;
