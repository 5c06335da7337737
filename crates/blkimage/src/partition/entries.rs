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

/// Properties of a partition in its table, besides its place. The disk claims all of them.
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
    /// Properties of each partition besides its place, by number.
    pub details: BTreeMap<u32, Details>,
    /// Error that ended the list of logical partitions early, if any. The disk may have more partitions.
    pub lost: Option<TableError>,
    /// Damage of the first copy of a GPT, if this is its backup. No partition is lost.
    pub primary: Option<TableError>,
}

impl Table {
    /// Returns whether a partition begins with the table itself. mkfs.vfat writes such a table into its boot sector, and the
    /// partition is the file system, which is all of the disk.
    pub fn is_of_file_system(&self) -> bool {
        self.partitions.iter().any(|it| it.offset == 0)
    }

    /// Returns the partition with this number.
    ///
    /// # Errors
    ///
    /// Fails if the table has none. The reason names those that it has, or the error that ended the table early.
    pub fn get(mut self, number: u32) -> Result<Partition, NoPartition> {
        let found = self.partitions.iter().find(|partition| partition.number == number);
        match (found, self.lost.take()) {
            (Some(found), _) => Ok(*found),
            (None, Some(lost)) => Err(NoPartition::Lost { number, lost }),
            (None, None) if self.partitions.is_empty() => Err(NoPartition::NoTable),
            (None, None) => {
                let numbers = self.partitions.iter().map(|partition| partition.number).collect();
                Err(NoPartition::Number { number, numbers })
            }
        }
    }
}

/// The reason why a disk has no partition with a number.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoPartition {
    /// The partition table cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// There is no partition table, or it is empty.
    #[error("it has no partition table")]
    NoTable,
    /// The table has other partitions.
    #[error("no partition {number}: it has {}", list(numbers))]
    Number {
        /// Number of the partition.
        number: u32,
        /// Numbers of the partitions in the table.
        numbers: Vec<u32>,
    },
    /// The partition is not among those before an error in the table.
    #[error("no partition {number}: {lost}")]
    Lost {
        /// Number of the partition.
        number: u32,
        /// The error.
        lost: TableError,
    },
}

fn list(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
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
