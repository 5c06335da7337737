//! Extents of the guest content of an image.

/// A run of guest bytes of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset of the first guest byte.
    pub offset: u64,
    /// Length in bytes, never 0.
    pub length: u64,
    /// Kind of the bytes.
    pub kind: ExtentKind,
}

/// Whether the bytes of an [`Extent`] have to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentKind {
    /// May hold anything, zeros included, and has to be read.
    Data,
    /// Reads as zeros and need not be read.
    Zero,
}

impl Extent {
    /// Returns the offset of the guest byte after the extent.
    pub fn end(&self) -> u64 {
        self.offset + self.length
    }

    /// Returns whether the byte at `offset` is in the extent.
    pub(crate) fn contains(&self, offset: u64) -> bool {
        (self.offset..self.end()).contains(&offset)
    }
}
