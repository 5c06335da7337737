//! Findings: a defect, the object that it affects, and its location.

use std::fmt;

use crate::backref::Owners;
use crate::checksum::Checksum;
use crate::superblock::SuperblockDefect;
use crate::tree::{BlockDefect, Parent};

/// Content that differs from what was written, or cannot be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// Object of the finding.
    pub subject: Subject,
    /// Defect of the object.
    pub problem: Problem,
    /// Logical address, if any. Superblocks have none.
    pub logical: Option<u64>,
    /// Length in bytes.
    pub length: u64,
    /// Number of adjacent blocks or sectors. If there are several, `problem` describes the first
    /// one.
    pub blocks: u64,
    /// Location, if known.
    pub place: Option<Place>,
    /// Number of mirrors.
    pub mirrors: u32,
    /// Numbers of the good mirrors, from 1.
    pub good_mirrors: Vec<u32>,
    /// Whether the content can be rebuilt from parity and the rest of its row. `None` if there is
    /// no parity, or if too much of the row cannot be read.
    pub rebuildable: Option<bool>,
    /// Location of the reference by which a tree block was found.
    pub parent: Option<Parent>,
    /// Files or trees that the content belongs to.
    pub owners: Owners,
}

impl Finding {
    /// Creates a finding about `length` bytes without further details.
    pub(super) fn new(subject: Subject, problem: Problem, length: u64) -> Self {
        Self {
            subject,
            problem,
            logical: None,
            length,
            blocks: 1,
            place: None,
            mirrors: 0,
            good_mirrors: Vec::new(),
            rebuildable: None,
            parent: None,
            owners: Owners::default(),
        }
    }

    /// Creates a finding about a tree block by its address, without a mirror.
    pub(super) fn of_tree_block(
        (tree, level): (u64, u8),
        logical: Option<u64>,
        length: usize,
        defect: BlockDefect,
    ) -> Self {
        let subject = Subject::TreeBlock { tree, level };
        Self { logical, ..Self::new(subject, Problem::Block(defect), length as u64) }
    }
}

/// Object of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// A superblock, by its number from 0.
    Superblock(u32),
    /// A tree block.
    TreeBlock {
        /// Tree from which it was reached, or 0 if unknown.
        tree: u64,
        /// Level of the block.
        level: u8,
    },
    /// A sector of data.
    Data,
    /// A sector of parity.
    Parity,
    /// A whole device.
    Device,
    /// A chunk, or its block group, by its logical address.
    Chunk,
    /// A whole tree, by its number.
    Tree(u64),
    /// A file or folder.
    Inode {
        /// Tree that contains the inode.
        tree: u64,
        /// Number of the inode.
        inode: u64,
    },
    /// The whole file system.
    FileSystem,
}

impl Subject {
    /// Returns the name for machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Superblock(_) => "superblock",
            Self::TreeBlock { .. } => "tree block",
            Self::Data => "data",
            Self::Parity => "parity",
            Self::Device => "device",
            Self::Chunk => "chunk",
            Self::Tree(_) => "tree",
            Self::Inode { .. } => "inode",
            Self::FileSystem => "file system",
        }
    }

    /// Returns the number of the tree that contains the object, if it has one.
    pub const fn tree(self) -> Option<u64> {
        match self {
            Self::TreeBlock { tree, .. } | Self::Tree(tree) | Self::Inode { tree, .. } => {
                Some(tree)
            }
            _ => None,
        }
    }
}

/// Location on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// Number of the mirror, from 1.
    pub mirror: u32,
    /// Number of the device.
    pub device: u64,
    /// Offset on the device in bytes.
    pub physical: u64,
}

/// Defect of an object.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// The content of data does not match its checksum.
    Checksum {
        /// Checksum in the checksum tree.
        expected: Checksum,
        /// Checksum of the content.
        computed: Checksum,
    },
    /// Defect of a superblock.
    Superblock(SuperblockDefect),
    /// Defect of a tree block.
    Block(BlockDefect),
    /// Reading fails.
    Unreadable(String),
    /// No chunk contains its address.
    Unmapped,
    /// Parity does not match the data of its row.
    Parity,
    /// Data has no checksum although its file requires one, so the kernel does not read it.
    NoChecksum,
    /// Differs from another mirror, and nothing shows which one is correct.
    Mirror {
        /// Number of the other mirror, from 1.
        other: u32,
    },
    /// Items contradict each other.
    Contradiction(String),
    /// A device is shorter than before.
    Short {
        /// Size of the device in bytes.
        found: u64,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum { expected, computed } => {
                write!(f, "checksum is {computed}, expected {expected}")
            }
            Self::Superblock(defect) => defect.fmt(f),
            Self::Block(defect) => defect.fmt(f),
            Self::Unreadable(reason) => write!(f, "cannot be read: {reason}"),
            Self::Unmapped => f.write_str("no chunk has its address"),
            Self::Short { found } => write!(f, "ends at {found}: something is cut off"),
            Self::NoChecksum => f.write_str("has no checksum, and a file needs one"),
            Self::Mirror { other } => write!(f, "differs from mirror {other}"),
            Self::Contradiction(reason) => f.write_str(reason),
            Self::Parity => f.write_str("is not the parity of its row"),
        }
    }
}

/// Category for counting findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Category {
    /// Superblocks.
    Superblock,
    /// Tree blocks that do not match their checksum.
    TreeChecksum,
    /// Tree blocks with a header or a structure that is invalid or does not match the reference.
    TreeHeader,
    /// Tree blocks with an item that breaks a rule.
    TreeItem,
    /// Items that contradict each other.
    Contradiction,
    /// Data that does not match its checksum.
    DataChecksum,
    /// Data without a required checksum.
    NoChecksum,
    /// Mirrors that differ, either of which may be correct.
    Mirror,
    /// Content that cannot be read.
    Read,
    /// Parities that do not match.
    Parity,
}

impl Category {
    /// All categories.
    pub const ALL: &'static [Self] = &[
        Self::Superblock,
        Self::TreeChecksum,
        Self::TreeHeader,
        Self::TreeItem,
        Self::Contradiction,
        Self::DataChecksum,
        Self::NoChecksum,
        Self::Mirror,
        Self::Read,
        Self::Parity,
    ];

    /// Returns the name for machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Superblock => "superblock",
            Self::TreeChecksum => "tree_checksum",
            Self::TreeHeader => "tree_header",
            Self::TreeItem => "tree_item",
            Self::Contradiction => "contradiction",
            Self::DataChecksum => "data_checksum",
            Self::NoChecksum => "no_checksum",
            Self::Mirror => "mirror",
            Self::Read => "read",
            Self::Parity => "parity",
        }
    }
}

impl Finding {
    /// Returns the category of the finding.
    pub fn category(&self) -> Category {
        match &self.problem {
            Problem::Superblock(_) => Category::Superblock,
            Problem::Checksum { .. } => Category::DataChecksum,
            Problem::Block(BlockDefect::Checksum { .. }) => Category::TreeChecksum,
            Problem::Block(BlockDefect::Item { .. }) => Category::TreeItem,
            Problem::Block(BlockDefect::Mirror { .. }) | Problem::Mirror { .. } => Category::Mirror,
            Problem::NoChecksum => Category::NoChecksum,
            Problem::Contradiction(_) => Category::Contradiction,
            Problem::Block(_) => Category::TreeHeader,
            Problem::Unreadable(_) | Problem::Short { .. } => Category::Read,
            Problem::Unmapped => match self.subject {
                Subject::Data => Category::Read,
                _ => Category::TreeHeader,
            },
            Problem::Parity => Category::Parity,
        }
    }

    /// Returns whether the reference to a tree block may be wrong instead of the block.
    pub fn is_about_reference(&self) -> bool {
        match &self.problem {
            Problem::Block(defect) => !matches!(
                defect,
                BlockDefect::Checksum { .. }
                    | BlockDefect::Item { .. }
                    | BlockDefect::Mirror { .. }
            ),
            Problem::Unmapped => true,
            _ => false,
        }
    }

    /// Returns the expected and the computed checksum, if the finding has them.
    pub fn checksums(&self) -> Option<(Checksum, Checksum)> {
        match &self.problem {
            Problem::Checksum { expected, computed }
            | Problem::Superblock(SuperblockDefect::Checksum { expected, computed })
            | Problem::Block(BlockDefect::Checksum { expected, computed }) => {
                Some((*expected, *computed))
            }
            _ => None,
        }
    }
}
