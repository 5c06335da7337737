//! Partitions of a whole disk, from a GPT or from an MBR with logical partitions.

mod entries;
mod gpt;
mod kind;
mod mbr;
mod verify;

pub use self::entries::{Details, Label, NoPartition, Partition, Table, TableError};
pub use self::kind::{Guid, Kind};
pub use self::verify::{Defect, Gpt, Part, Protection, Structure, verify_gpt};
use crate::Source;

/// Returns the partition table of a disk, which is empty if the disk has none.
///
/// # Errors
///
/// Fails if the disk cannot be read or both copies of its GPT are damaged.
pub fn table(source: &dyn Source) -> Result<Table, TableError> {
    let Some(sector) = mbr::read(source)? else { return Ok(Table::default()) };
    if sector.protects_gpt() {
        return gpt::table(source);
    }
    Ok(sector.partitions(source))
}

/// Returns the partition of a disk with this number.
///
/// # Errors
///
/// Fails if the table cannot be read, or does not have the partition.
pub fn find(source: &dyn Source, number: u32) -> Result<Partition, NoPartition> {
    table(source)?.get(number)
}
