//! The resource fork of old images, which has the tables of runs.
//!
//! The data of all resources lies in a row, each behind its length. As in QEMU, those that begin like a table are one; the map
//! behind them, which has their types and names, is not looked at.

use super::Named;
use super::table::Table;
use crate::formats::fields::array;

/// Returns the tables, in order. Fails with the reason if the fork is not understood.
pub(super) fn tables(fork: &[u8]) -> Result<Vec<Named>, String> {
    let invalid = || "has a resource fork that is not valid".to_owned();
    let number = |bytes: &[u8], at| u32::from_be_bytes(array(bytes, at)) as usize;
    if fork.len() < HEADER {
        return Err(invalid());
    }
    let (start, length) = (number(fork, 0), number(fork, 8));
    let end = start.checked_add(length).ok_or_else(invalid)?;
    let mut rest = fork.get(start..end).ok_or_else(invalid)?;
    let mut tables = Vec::new();
    while !rest.is_empty() {
        let (head, behind) = rest.split_at_checked(4).ok_or_else(invalid)?;
        let (data, behind) = behind.split_at_checked(number(head, 0)).ok_or_else(invalid)?;
        rest = behind;
        if Table::is_one(data) {
            tables.push(Named { name: String::new(), table: data.to_vec() });
        }
    }
    Ok(tables)
}

/// Size of the header in bytes: offsets and lengths of the data and of the map.
const HEADER: usize = 16;
