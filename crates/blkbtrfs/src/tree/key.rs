//! Keys and the types of items.

use crate::bytes::{u8_at, u64_at};

/// What items are found by, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) object: u64,
    pub(crate) kind: u8,
    pub(crate) offset: u64,
}

impl Key {
    /// Bytes of a key.
    pub(crate) const SIZE: usize = 17;

    pub(crate) const fn new(object: u64, kind: u8, offset: u64) -> Self {
        Self { object, kind, offset }
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self { object: u64_at(bytes, 0)?, kind: u8_at(bytes, 8)?, offset: u64_at(bytes, 9)? })
    }
}

/// Types of items.
pub(crate) mod kind {
    pub(crate) const INODE: u8 = 1;
    pub(crate) const INODE_REF: u8 = 12;
    pub(crate) const INODE_EXTREF: u8 = 13;
    pub(crate) const FILE_EXTENT: u8 = 108;
    pub(crate) const CHECKSUM: u8 = 128;
    pub(crate) const ROOT: u8 = 132;
    pub(crate) const ROOT_BACKREF: u8 = 144;
    pub(crate) const EXTENT: u8 = 168;
    pub(crate) const METADATA: u8 = 169;
    pub(crate) const EXTENT_OWNER: u8 = 172;
    pub(crate) const TREE_BLOCK_REF: u8 = 176;
    pub(crate) const DATA_REF: u8 = 178;
    pub(crate) const SHARED_BLOCK_REF: u8 = 182;
    pub(crate) const SHARED_DATA_REF: u8 = 184;
    pub(crate) const BLOCK_GROUP: u8 = 192;
    pub(crate) const DEVICE: u8 = 216;
    pub(crate) const CHUNK: u8 = 228;
}
