//! Partitions of a whole disk.
//!
//! A GPT, or an MBR with logical partitions.

mod entries;
mod gpt;
mod mbr;

pub use self::entries::{Partition, Table, TableError};
use crate::Source;

/// The partitions of a disk; none if it has no table.
///
/// # Errors
///
/// The disk cannot be read, or both copies of its GPT make no sense.
pub fn table(source: &dyn Source) -> Result<Table, TableError> {
    let Some(sector) = mbr::read(source)? else { return Ok(Table::default()) };
    if sector.protects_gpt() {
        return Ok(Table { partitions: gpt::partitions(source)?, lost: None });
    }
    Ok(sector.partitions(source))
}
