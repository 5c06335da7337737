//! Findings: what is wrong, with what, and where it lies.

use crate::backref::Owners;
use crate::checksum::Checksum;
use crate::superblock::SuperblockDefect;
use crate::tree::{BlockDefect, Parent};

/// Something that is not what was written, or cannot be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// What it is about.
    pub subject: Subject,
    /// What is wrong.
    pub problem: Problem,
    /// Its logical address. Superblocks have none.
    pub logical: Option<u64>,
    /// Its length in bytes.
    pub length: u64,
    /// Blocks or sectors that it is about, side by side: if there are several, checksums are those
    /// of the first one.
    pub blocks: u64,
    /// Where it lies, where that is known.
    pub place: Option<Place>,
    /// Mirrors there are of it.
    pub mirrors: u32,
    /// Those of them that are good, from 1 on.
    pub good_mirrors: Vec<u32>,
    /// Whether parity and the rest of its row make up what was written. `None` where nobody can tell:
    /// there is no parity, or too much of the row cannot be read.
    pub rebuildable: Option<bool>,
    /// Where the reference to a tree block is that it was found by.
    pub parent: Option<Parent>,
    /// What it belongs to.
    pub owners: Owners,
}

impl Finding {
    /// One about `length` bytes, of which nothing else is known.
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

    /// One about a tree block by its address alone, wherever its mirrors lie.
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

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// A superblock, by its number from 0 on.
    Superblock(u32),
    /// A tree block.
    TreeBlock {
        /// The tree that it was reached from, 0 if nobody knows.
        tree: u64,
        /// Its level.
        level: u8,
    },
    /// A sector of data.
    Data,
    /// A sector of a parity.
    Parity,
    /// A device as a whole.
    Device,
    /// A chunk, or its block group, by its logical address.
    Chunk,
    /// A tree as a whole, by its number.
    Tree(u64),
    /// A file or folder.
    Inode {
        /// The tree that it is in.
        tree: u64,
        /// Its number.
        inode: u64,
    },
    /// All of it.
    FileSystem,
}

/// Where something lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The mirror, from 1 on.
    pub mirror: u32,
    /// The number of the device.
    pub device: u64,
    /// The address on the device.
    pub physical: u64,
}

/// What is wrong.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// Data that is not what was written.
    Checksum {
        /// What the checksum tree says.
        expected: Checksum,
        /// What it is.
        computed: Checksum,
    },
    /// Something with a superblock.
    Superblock(SuperblockDefect),
    /// Something with a tree block.
    Block(BlockDefect),
    /// It cannot be read.
    Unreadable(String),
    /// No chunk has its address.
    Unmapped,
    /// It is not the parity of its row.
    Parity,
    /// It has no checksum, and a file that has to have them uses it: the kernel does not read it.
    NoChecksum,
    /// It differs from another mirror, and nothing tells which one is right.
    Mirror {
        /// The other one, from 1 on.
        other: u32,
    },
    /// Items say different things of it.
    Contradiction(String),
    /// It is shorter than it was.
    Short {
        /// Bytes that there are.
        found: u64,
    },
}

/// What findings are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Superblocks.
    Superblock,
    /// Tree blocks with another checksum.
    TreeChecksum,
    /// Tree blocks that are not what was asked for, or make no sense.
    TreeHeader,
    /// Tree blocks with an item that breaks a rule.
    TreeItem,
    /// Items that contradict each other.
    Contradiction,
    /// Data with another checksum.
    DataChecksum,
    /// Data without a checksum that has to have one.
    NoChecksum,
    /// Mirrors that differ, each of which may be right.
    Mirror,
    /// What cannot be read.
    Read,
    /// Parities.
    Parity,
}

impl Category {
    /// All of them.
    pub const ALL: [Self; 10] = [
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

    /// A name for programs.
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
    /// What it counts as.
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

    /// Whether the reference to a tree block may be what is wrong, and not the block.
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

    /// The checksum that was expected and the one computed, if it is about one.
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
