//! What an image says about a range of its guest content.

/// A run of guest bytes of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First guest byte.
    pub offset: u64,
    /// Length in bytes, never 0.
    pub length: u64,
    /// What the bytes are.
    pub kind: ExtentKind,
}

/// Whether the bytes of an [`Extent`] have to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentKind {
    /// Anything, zeros included: read it to know.
    Data,
    /// Reads as zeros: no need to read it.
    Zero,
}

impl Extent {
    /// The guest byte after the last one.
    pub fn end(&self) -> u64 {
        self.offset + self.length
    }
}
