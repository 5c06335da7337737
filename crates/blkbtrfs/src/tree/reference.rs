//! References to tree blocks: their locations, and the properties that they record of the blocks.

use std::fmt;

use super::Key;

/// A reference to a block, with all properties that it records of the block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// Tree from which the reference was reached.
    pub(crate) tree: u64,
    pub(crate) logical: u64,
    pub(crate) level: u8,
    pub(crate) generation: Option<u64>,
    pub(crate) first_key: Option<Key>,
    /// Exclusive upper limit of all keys in the block, which is the next key of its parent.
    pub(crate) end: Option<Key>,
    /// Location of the reference. `None` if only the extent tree refers to the block.
    pub(crate) parent: Option<Parent>,
}

/// Location of a reference to a tree block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parent {
    /// Superblock.
    Superblock,
    /// A root item in a leaf.
    Root {
        /// Address of the leaf.
        logical: u64,
        /// Index of the item, from 0.
        slot: u32,
    },
    /// A pointer in a node.
    Node {
        /// Address of the node.
        logical: u64,
        /// Index of the pointer, from 0.
        slot: u32,
    },
}

impl Parent {
    /// Returns whether the referenced block is the root of a tree.
    pub(super) fn is_of_root(self) -> bool {
        !matches!(self, Self::Node { .. })
    }
}

impl fmt::Display for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superblock => f.write_str("the superblock"),
            Self::Root { logical, slot } => write!(f, "root item {slot} of block {logical}"),
            Self::Node { logical, slot } => write!(f, "pointer {slot} of block {logical}"),
        }
    }
}

/// Location of the root of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeRoot {
    pub(crate) logical: u64,
    pub(crate) level: u8,
    pub(crate) generation: u64,
    pub(crate) parent: Parent,
}

/// Returns the reference to the root of `tree`.
pub(crate) fn root_block(tree: u64, root: TreeRoot) -> Expected {
    Expected {
        tree,
        logical: root.logical,
        level: root.level,
        generation: Some(root.generation),
        first_key: None,
        end: None,
        parent: Some(root.parent),
    }
}

/// Number for a tree whose owner is unknown.
pub(crate) const ANY_TREE: u64 = 0;

/// Maximum level of a block.
pub(crate) const MAX_LEVEL: u8 = 7;
