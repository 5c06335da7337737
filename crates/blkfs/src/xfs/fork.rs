//! A fork of an inode: content or attributes.

/// A fork of an inode.
#[derive(Clone, Copy, Debug)]
pub struct Fork<'b> {
    pub format: u8,
    /// The bytes in the inode.
    pub bytes: &'b [u8],
    /// Number of extents as stated.
    pub extents: u64,
    pub is_attributes: bool,
}

impl Fork<'_> {
    pub fn is_local(&self) -> bool {
        self.format == LOCAL
    }

    pub fn is_tree(&self) -> bool {
        self.format == BTREE
    }
}

// Formats of forks.
const LOCAL: u8 = 1;
pub const EXTENTS: u8 = 2;
pub const BTREE: u8 = 3;
