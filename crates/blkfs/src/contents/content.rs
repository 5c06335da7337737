//! What was found in a range of a disk.

use std::collections::BTreeSet;

/// What is in a range of a disk, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Content {
    /// Number of the partition that the first byte is in.
    pub partition: Option<u32>,
    /// Kind of the first file system in the range.
    pub file_system: Option<&'static str>,
    /// What the bytes belong to, each once, by offset.
    pub holders: Vec<Holder>,
    /// Whether there may be more.
    pub is_partial: bool,
}

/// Bytes of a disk that belong to one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// Offset on the disk in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Number of the partition.
    pub partition: Option<u32>,
    /// Kind of the file system.
    pub file_system: Option<&'static str>,
    /// What they belong to.
    pub holder: Holder,
}

/// What bytes belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// What they are used for.
    pub usage: Usage,
    /// The name of a structure of metadata.
    pub structure: Option<&'static str>,
    /// Paths of the file or directory from the top of the file system. Several for one with hard links, none for one that is
    /// in no directory.
    pub paths: BTreeSet<Vec<u8>>,
    /// Number of the inode, or of the record that the file system has instead.
    pub object: Option<u64>,
    /// Offset of the first byte in the content of a file, in bytes.
    pub offset: Option<u64>,
}

/// What bytes of a disk are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Usage {
    /// Content of files.
    File,
    /// Metadata of a file system, directories included, or a partition table.
    Metadata,
    /// A journal or log.
    Journal,
    /// Not known: another file system, no file system, or a place that belongs to nothing.
    Unknown,
    /// Free space of a file system.
    Free,
}

impl Usage {
    /// All of them, in order.
    pub const ALL: [Self; 5] =
        [Self::File, Self::Metadata, Self::Journal, Self::Unknown, Self::Free];

    /// Returns the name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Metadata => "metadata",
            Self::Journal => "journal",
            Self::Unknown => "unknown",
            Self::Free => "free",
        }
    }
}

impl Content {
    /// Returns the content of a range of which nothing is known.
    pub fn unknown() -> Self {
        Self { is_partial: true, ..Self::default() }
    }

    /// Returns the paths of files with content in the range.
    pub fn files(&self) -> impl Iterator<Item = &[u8]> {
        let files = self.holders.iter().filter(|it| it.usage == Usage::File);
        files.flat_map(|it| it.paths.iter().map(Vec::as_slice))
    }

    /// Returns whether some of the range is metadata of a file system, or a partition table.
    pub fn is_metadata(&self) -> bool {
        self.holders.iter().any(|it| matches!(it.usage, Usage::Metadata | Usage::Journal))
    }

    /// Adds what bytes belong to, unless it was added before.
    pub(super) fn add(&mut self, holder: Holder) {
        let is_same = |it: &Holder| {
            (it.usage, it.structure, it.object, &it.paths)
                == (holder.usage, holder.structure, holder.object, &holder.paths)
        };
        if self.holders.iter().any(is_same) {
            return;
        }
        // Many files leave room for the structures, and the reverse.
        let is_file = holder.usage == Usage::File;
        let alike = self.holders.iter().filter(|it| (it.usage == Usage::File) == is_file);
        if alike.count() < MAX_HOLDERS {
            self.holders.push(holder);
        } else {
            self.is_partial = true;
        }
    }
}

impl Holder {
    pub(super) fn new(usage: Usage) -> Self {
        Self { usage, structure: None, paths: BTreeSet::new(), object: None, offset: None }
    }

    /// Bytes in no file system, which belong to the partition table of this name or to nothing that is known.
    pub(super) fn of_table(name: Option<&'static str>) -> Self {
        let usage = if name.is_some() { Usage::Metadata } else { Usage::Unknown };
        Self { structure: name, ..Self::new(usage) }
    }
}

/// Maximum number of files that are named for one range, and of structures.
/// Limit in files.
const MAX_HOLDERS: usize = 16;
