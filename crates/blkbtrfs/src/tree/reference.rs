//! References to tree blocks: where they are, and what they say about the blocks that they lead to.

use std::fmt;

use super::Key;

/// A reference to a block: where it leads, and everything it says about the block there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// The tree that it was reached from.
    pub(crate) tree: u64,
    pub(crate) logical: u64,
    pub(crate) level: u8,
    pub(crate) generation: Option<u64>,
    pub(crate) first_key: Option<Key>,
    /// All keys of the block are below this one, the next of its parent.
    pub(crate) end: Option<Key>,
    /// Where the reference is. `None` if only the extent tree knows of the block.
    pub(crate) parent: Option<Parent>,
}

/// Where a reference to a tree block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parent {
    /// In the superblock.
    Superblock,
    /// In a root item, which is in a leaf.
    Root {
        /// The address of the leaf.
        logical: u64,
        /// Which of its items, from 0 on.
        slot: u32,
    },
    /// In a node.
    Node {
        /// The address of the node.
        logical: u64,
        /// Which of its pointers, from 0 on.
        slot: u32,
    },
}

impl Parent {
    /// Whether the block below is the root of a tree.
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

/// Where a tree begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeRoot {
    pub(crate) logical: u64,
    pub(crate) level: u8,
    pub(crate) generation: u64,
    pub(crate) parent: Parent,
}

/// The reference to the root of `tree`.
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

/// Stands for a tree whose owner is not known.
pub(crate) const ANY_TREE: u64 = 0;

/// The level of the highest block of any tree.
pub(crate) const MAX_LEVEL: u8 = 7;
