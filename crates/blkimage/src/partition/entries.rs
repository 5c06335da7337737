//! What a partition table says.

/// A part of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number, as Linux counts: logical ones from 5 on.
    pub number: u32,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// The partition table of a disk.
#[derive(Debug, Default)]
pub struct Table {
    /// By number.
    pub partitions: Vec<Partition>,
    /// Why there may be more: the list of logical partitions breaks off.
    pub lost: Option<TableError>,
}

impl Table {
    /// Returns the partition of a number.
    pub fn find(&self, number: u32) -> Option<&Partition> {
        self.partitions.iter().find(|partition| partition.number == number)
    }

    /// Returns the numbers that there are, for a message: `1, 2`.
    pub fn numbers(&self) -> String {
        let numbers = self.partitions.iter().map(|partition| partition.number.to_string());
        numbers.collect::<Vec<_>>().join(", ")
    }
}

/// Why there is no list of partitions, or no end of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The disk cannot be read.
    #[error(transparent)]
    Image(#[from] crate::Error),
    /// Both copies of a GPT are damaged.
    #[error("the partition table is damaged: {0}")]
    Gpt(String),
    /// A record of a logical partition that makes no sense.
    #[error("the partition table is damaged: {reason} at sector {sector}")]
    Mbr {
        /// What is wrong.
        reason: &'static str,
        /// Where the record is.
        sector: u64,
    },
}
