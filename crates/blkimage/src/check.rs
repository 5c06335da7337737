//! Checks of the structure of an image: what its format says of itself, without reading guest content.
//!
//! [`Image::check_structure`](crate::Image::check_structure) checks the image that was opened, and
//! [`OpenOptions::check_structure`](crate::OpenOptions::check_structure) also those whose content cannot be read, because it is
//! encrypted, a backing file is missing, or a table is damaged. Backing files are never followed.

use std::fmt;
use std::ops::ControlFlow;

/// Receives what a check finds, in any order.
pub trait Visitor {
    /// Receives a finding. A damaged image may have millions.
    fn finding(&mut self, finding: Finding);

    /// Called now and then with the number of bytes that were read since the last call. Stops the check with `Break`.
    fn advance(&mut self, bytes: u64) -> ControlFlow<()> {
        let _ = bytes;
        ControlFlow::Continue(())
    }
}

/// A part of an image that is not as its format asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Name of the structure, in the words of the specification of the format, such as `L2 table`.
    pub structure: &'static str,
    /// Offset in the file in bytes: of the clusters, or of the entry or field that is wrong.
    pub offset: u64,
    /// Length in bytes, 0 if it is unknown.
    pub length: u64,
    /// Guest offset of the content that it is about, if it is about content of the current state or of a snapshot.
    pub guest: Option<u64>,
    /// What is wrong.
    pub reason: Reason,
    /// Number of errors or leaks that this is in the count of `qemu-img check`: clusters in a row with the same counts, or
    /// references to a table with this entry.
    pub count: u64,
}

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// The image is damaged. The next write to it may destroy content.
    Error,
    /// A reference count is out of date, in an image that says of itself that they may be. It is computed anew when the image
    /// is next opened for writing.
    Outdated,
    /// Space of the file is not used. No content is lost.
    Leak,
    /// A part could not be read or was not checked.
    Unchecked,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The stored reference count is not the number of references.
    ReferenceCount {
        /// The stored count.
        stored: u64,
        /// The number of references.
        references: u64,
    },
    /// There are more references than a reference count can hold.
    TooManyReferences {
        /// The number of references.
        references: u64,
    },
    /// The stored reference count cannot be read, because the entry of its block is invalid.
    CountUnreadable,
    /// A block of reference counts is something else as well.
    SharedBlock {
        /// The number of references.
        references: u64,
    },
    /// The flag that says that a cluster may be overwritten contradicts its stored reference count.
    CopiedFlag {
        /// The stored count.
        stored: u64,
        /// Whether the flag is set.
        is_set: bool,
    },
    /// The flag that says that a cluster may be overwritten is set for a compressed cluster.
    CopiedCompressed,
    /// Reserved bits are set.
    ReservedBits {
        /// The entry.
        entry: u64,
    },
    /// An offset is not at a cluster boundary.
    Unaligned {
        /// The offset.
        target: u64,
    },
    /// Is past the end of the file.
    PastEnd {
        /// Offset of its first byte.
        target: u64,
        /// Its length in bytes.
        length: u64,
    },
    /// A compressed cluster in an image whose content is in an external data file.
    CompressedInDataFile,
    /// A compressed cluster with a bitmap of subclusters.
    CompressedSubclusters,
    /// Subclusters that are both allocated and zero.
    ContradictorySubclusters {
        /// The bitmap of subclusters.
        bitmap: u64,
    },
    /// Allocated subclusters of a cluster that is not.
    UnallocatedSubclusters {
        /// The bitmap of subclusters.
        bitmap: u64,
    },
    /// A cluster of zeros in version 2 of the format, which has none. `qemu-img check` does not look at this.
    ZeroFlag,
    /// The offset in an external data file is not the guest offset. `qemu-img check` does not look at this.
    DataFileOffset {
        /// The offset in the data file.
        target: u64,
    },
    /// Snapshots in an image whose content is in an external data file.
    SnapshotsWithDataFile,
    /// The entry of a snapshot lacks its size.
    IncompleteSnapshot,
    /// A table is larger than the format allows.
    TooLarge,
    /// A structure violates the rules of the format, or could not be read.
    Invalid(String),
    /// A limit was reached, so that this was not checked.
    Limit,
}

/// What a check that came to its end found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Number of errors.
    pub errors: u64,
    /// Number of reference counts, and flags that depend on them, that are out of date.
    pub outdated: u64,
    /// Number of units of space that are not used.
    pub leaks: u64,
    /// Number of parts that could not be read or were not checked.
    pub unchecked: u64,
    /// Size of such a unit in bytes, a cluster.
    pub unit: u64,
    /// Number of units in the file.
    pub units: u64,
    /// What is verified of each unit: `reference count`, or the name of a checksum.
    pub verified: &'static str,
    /// Whether all references were seen. If not, leaks were not looked for.
    pub is_complete: bool,
    /// Whether the image says that it was not closed.
    pub is_dirty: bool,
    /// Whether a program marked the image as damaged.
    pub is_marked_corrupt: bool,
}

impl Summary {
    pub(crate) fn add(&mut self, finding: &Finding) {
        let sum = match finding.severity {
            Severity::Error => &mut self.errors,
            Severity::Outdated => &mut self.outdated,
            Severity::Leak => &mut self.leaks,
            Severity::Unchecked => &mut self.unchecked,
        };
        *sum = sum.saturating_add(finding.count);
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReferenceCount { stored, references } => {
                write!(f, "reference count {stored}, references {references}")
            }
            Self::TooManyReferences { references } => {
                write!(f, "{references} references are more than a reference count can hold")
            }
            Self::CountUnreadable => f.write_str("reference count cannot be read"),
            Self::SharedBlock { references } => {
                write!(f, "block of reference counts has {references} references")
            }
            Self::CopiedFlag { stored, is_set: true } => {
                write!(f, "copied flag is set and the reference count is {stored}")
            }
            Self::CopiedFlag { stored, is_set: false } => {
                write!(f, "copied flag is not set and the reference count is {stored}")
            }
            Self::CopiedCompressed => f.write_str("copied flag of a compressed cluster is set"),
            Self::ReservedBits { entry } => write!(f, "reserved bits of entry {entry:#x} are set"),
            Self::Unaligned { target } => {
                write!(f, "offset {target:#x} is not aligned to a cluster")
            }
            Self::PastEnd { target, length } => {
                write!(f, "{length} bytes at offset {target:#x} lie past the end of the file")
            }
            Self::CompressedInDataFile => {
                f.write_str("compressed cluster in an image with an external data file")
            }
            Self::CompressedSubclusters => f.write_str("compressed cluster with subclusters"),
            Self::ContradictorySubclusters { bitmap } => {
                write!(f, "subclusters are both allocated and zero: {bitmap:#x}")
            }
            Self::UnallocatedSubclusters { bitmap } => {
                write!(f, "subclusters are allocated in a cluster that is not: {bitmap:#x}")
            }
            Self::ZeroFlag => f.write_str("zero flag in an image of version 2"),
            Self::DataFileOffset { target } => {
                write!(f, "offset {target:#x} in the external data file is not the guest offset")
            }
            Self::SnapshotsWithDataFile => {
                f.write_str("snapshots in an image with an external data file")
            }
            Self::IncompleteSnapshot => f.write_str("snapshot has no virtual size"),
            Self::TooLarge => f.write_str("is too large"),
            Self::Invalid(reason) => f.write_str(reason),
            Self::Limit => f.write_str("was not checked: a limit was reached"),
        }
    }
}
