//! Items of the extent tree, with the references to an extent.

use crate::bytes::{u8_at, u32_at, u64_at};
use crate::tree::Key;
use crate::tree::key::kind;

/// An extent of data or a tree block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExtentItem<'a> {
    /// Number of references. References to a tree block are pointers of nodes and root items. Each
    /// counts once, even if several trees share the node.
    pub(crate) count: u64,
    pub(crate) generation: u64,
    pub(crate) flags: u64,
    /// Level, if this is a tree block.
    pub(crate) level: u8,
    inline: &'a [u8],
}

/// A reference to an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reference {
    /// From a block of this tree.
    Tree(u64),
    /// From the block at this address.
    Block(u64),
    /// From a file.
    File {
        tree: u64,
        inode: u64,
        /// Offset in the file at which the extent would begin, even if only its end is used.
        offset: u64,
    },
    /// From files in the leaf at this address.
    Leaf(u64),
}

impl<'a> ExtentItem<'a> {
    /// Parses an item of type EXTENT or METADATA.
    pub(crate) fn parse(key: Key, bytes: &'a [u8]) -> Option<Self> {
        let (count, generation, flags) = (u64_at(bytes, 0)?, u64_at(bytes, 8)?, u64_at(bytes, 16)?);
        let rest = bytes.get(24..)?;
        let (level, inline) = if key.kind == kind::METADATA {
            (u8::try_from(key.offset).ok()?, rest)
        } else if flags & TREE_BLOCK != 0 {
            (u8_at(rest, Key::SIZE)?, rest.get(Key::SIZE + 1..)?)
        } else {
            (0, rest)
        };
        Some(Self { count, generation, flags, level, inline })
    }

    /// Returns the references in the item itself, and the count of each. More may follow in
    /// separate items.
    pub(crate) fn references(&self) -> impl Iterator<Item = (Reference, u32)> {
        let mut rest = self.inline;
        std::iter::from_fn(move || {
            loop {
                let kind = u8_at(rest, 0)?;
                let size = match kind {
                    kind::DATA_REF => 28,
                    kind::SHARED_DATA_REF => 12,
                    kind::TREE_BLOCK_REF | kind::SHARED_BLOCK_REF | kind::EXTENT_OWNER => 8,
                    _ => return None,
                };
                let body = rest.get(1..=size)?;
                rest = &rest[1 + size..];
                let number = u64_at(body, 0)?;
                return Some(match kind {
                    kind::DATA_REF => (Reference::of_file(body)?, u32_at(body, 24)?),
                    kind::TREE_BLOCK_REF => (Reference::Tree(number), 1),
                    kind::SHARED_BLOCK_REF => (Reference::Block(number), 1),
                    kind::SHARED_DATA_REF => (Reference::Leaf(number), u32_at(body, 8)?),
                    _ => continue,
                });
            }
        })
    }
}

impl Reference {
    /// Parses a reference in a separate item.
    pub(crate) fn parse(key: Key, bytes: &[u8]) -> Option<Self> {
        match key.kind {
            kind::DATA_REF => Self::of_file(bytes),
            kind::TREE_BLOCK_REF => Some(Self::Tree(key.offset)),
            kind::SHARED_BLOCK_REF => Some(Self::Block(key.offset)),
            kind::SHARED_DATA_REF => Some(Self::Leaf(key.offset)),
            _ => None,
        }
    }

    fn of_file(bytes: &[u8]) -> Option<Self> {
        let (tree, inode, offset) = (u64_at(bytes, 0)?, u64_at(bytes, 8)?, u64_at(bytes, 16)?);
        Some(Self::File { tree, inode, offset })
    }
}

/// Flags of an extent.
pub(crate) const DATA: u64 = 1;
pub(crate) const TREE_BLOCK: u64 = 2;
