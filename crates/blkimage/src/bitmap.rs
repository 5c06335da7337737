//! Bitmaps of changed blocks in an image.

use std::ops::Range;

/// A bitmap of changed blocks, which QEMU calls a dirty bitmap, in an image.
///
/// The name comes from the image, which may be hostile. It is usually UTF-8, and up to 1023 bytes long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bitmap {
    /// Name.
    pub name: Vec<u8>,
    /// Number of bytes for each bit, a power of two from 512 on.
    pub granularity: u64,
    /// Whether it records writes when the image is opened for writing.
    pub is_enabled: bool,
    /// Whether a program that wrote to the image did not close it. The content of the bitmap is not complete then.
    pub is_in_use: bool,
}

/// Collects the extents of set bits.
#[derive(Debug)]
pub(crate) struct DirtyExtents {
    extents: Vec<Range<u64>>,
    size: u64,
}

impl DirtyExtents {
    /// Creates an empty collection for an image of `size` bytes.
    pub fn new(size: u64) -> Self {
        Self { extents: Vec::new(), size }
    }

    /// Appends an extent. Returns `None` if there are too many.
    pub fn push(&mut self, extent: Range<u64>) -> Option<()> {
        let extent = extent.start..extent.end.min(self.size);
        if extent.is_empty() {
            return Some(());
        }
        let is_full = self.extents.len() == MAX_EXTENTS;
        match self.extents.last_mut() {
            Some(last) if last.end == extent.start => last.end = extent.end,
            _ if is_full => return None,
            _ => self.extents.push(extent),
        }
        Some(())
    }

    /// Returns the extents.
    pub fn into_list(self) -> Vec<Range<u64>> {
        self.extents
    }
}

/// Maximum number of extents of a bitmap of changed blocks. They take 256 MiB.
/// Limit in extents.
const MAX_EXTENTS: usize = 16 << 20;
