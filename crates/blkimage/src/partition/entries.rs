//! The content of a partition table.

use std::collections::BTreeMap;

use super::kind::{Guid, Kind};

/// A partition of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Number of the partition, as in Linux. Logical partitions start at 5.
    pub number: u32,
    /// Offset of the first byte on the disk.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// The kind of a partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Label {
    /// GUID partition table.
    Gpt,
    /// Master boot record.
    Mbr,
}

/// What a partition table says about a partition beside its place. All of it is the claim of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Details {
    /// Type.
    pub kind: Kind,
    /// Unique id, in a GPT.
    pub uuid: Option<Guid>,
    /// Name, at most 36 characters. Empty without one, and in an MBR.
    pub name: String,
}

/// The partition table of a disk.
#[derive(Debug, Default)]
pub struct Table {
    /// Kind of the table. `None` if the disk has none.
    pub label: Option<Label>,
    /// Partitions, sorted by number.
    pub partitions: Vec<Partition>,
    /// What the table says about each partition beside its place, by number.
    pub details: BTreeMap<u32, Details>,
    /// Error that ended the list of logical partitions early, if any. The disk may have more partitions.
    pub lost: Option<TableError>,
    /// Damage of the first copy of a GPT, if this is its backup. No partition is lost.
    pub primary: Option<TableError>,
}

impl Table {
    /// Returns the partition with this number.
    pub fn find(&self, number: u32) -> Option<&Partition> {
        self.partitions.iter().find(|partition| partition.number == number)
    }

    /// Returns the numbers of all partitions for a message, as in `1, 2`.
    pub fn numbers(&self) -> String {
        let numbers = self.partitions.iter().map(|partition| partition.number.to_string());
        numbers.collect::<Vec<_>>().join(", ")
    }
}

/// The reason why a partition table cannot be read, or only in part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The disk cannot be read.
    #[error(transparent)]
    Image(#[from] crate::Error),
    /// Both copies of a GPT are damaged.
    #[error("the partition table is damaged: {0}")]
    Gpt(String),
    /// The first copy of a GPT is damaged.
    #[error("the primary partition table is damaged, and the backup is used: {0}")]
    Primary(String),
    /// A record of a logical partition is invalid.
    #[error("the partition table is damaged: {reason} at sector {sector}")]
    Mbr {
        /// Description of the damage.
        reason: &'static str,
        /// Sector of the record.
        sector: u64,
    },
}
