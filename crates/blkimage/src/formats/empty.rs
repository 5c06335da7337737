//! Disks of 0 bytes, which may store nothing: a damaged size would make all content disappear.

use super::fields::for_each_entry;
use super::table_cache::Table;
use crate::error::{Error, Result};
use crate::storage::HostFile;

/// Fails if a disk of `size` bytes, which is 0, has an entry in a table that stores something. Other sizes pass.
///
/// The part of the table past the end of the file is not read.
pub(crate) fn check_empty(
    file: &HostFile,
    size: u64,
    table: Table,
    is_stored: impl Fn(u64) -> bool,
) -> Result<()> {
    let width = table.entry.width() as u64;
    let length = table.length.min(file.size().saturating_sub(table.offset));
    if size > 0 || length == 0 {
        return Ok(());
    }
    for_each_entry(file, table.offset, length / width, table.entry, |index, entry| {
        if is_stored(entry) { Err(not_empty(file, table.offset + index * width)) } else { Ok(()) }
    })
}

/// Creates the error about a disk of 0 bytes that stores what `offset` leads to.
pub(crate) fn not_empty(file: &HostFile, offset: u64) -> Error {
    file.corrupt("has a virtual size of 0 bytes, and stores content").at(offset)
}
