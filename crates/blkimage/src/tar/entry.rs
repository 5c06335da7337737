//! A member of an archive.

use std::sync::Arc;

use super::header::BLOCK;
use super::sparse::Sparse;
use crate::error::excerpt;

/// A member of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub name: Vec<u8>,
    /// Offset of its content in the archive.
    pub offset: u64,
    pub size: u64,
    pub node: Node,
    /// Where a link leads. `None` if programs read that differently.
    pub target: Option<Vec<u8>>,
    /// What of a file with holes is stored.
    pub sparse: Option<Arc<Sparse>>,
}

/// The type of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    File,
    Folder,
    /// A link, a device or a FIFO, by the type in its header. It has no content.
    Special(u8),
    /// A type whose content programs read differently.
    Unknown(u8),
    /// Records about all members, which are no member. Programs in Go treat their name like a member's.
    Global,
}

impl Node {
    /// Returns a member of this type in words.
    pub fn describe(self, name: &str) -> String {
        match self {
            Self::File => format!("file \"{name}\""),
            Self::Folder => format!("folder \"{name}\""),
            Self::Special(b'1') => format!("hard link \"{name}\""),
            Self::Special(b'2') => format!("symbolic link \"{name}\""),
            Self::Special(b'6') => format!("FIFO \"{name}\""),
            Self::Special(_) => format!("device \"{name}\""),
            Self::Unknown(kind) => {
                format!("member \"{name}\" of the type '{}'", excerpt(&[kind]))
            }
            Self::Global => format!("global header \"{name}\""),
        }
    }
}

impl Entry {
    /// Returns whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.node == Node::File
    }

    /// Returns the offset of its header, the last one if there are several.
    pub fn header(&self) -> u64 {
        self.offset - BLOCK
    }
}
