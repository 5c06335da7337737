//! Checks the reference counts and tables of a qcow2 image, as `qemu-img check` does, and counts in the same way.
//!
//! All references to each cluster are counted (`references.rs`, `l1.rs`, `l2.rs`) and compared with the counts that the image
//! stores (`compare.rs`). Memory is bounded: the clusters of a large file are counted in windows (`counts.rs`), with one pass
//! over all tables for each. Time is bounded: bytes that several tables share are read once a pass (`sweep.rs`, `tables.rs`).

mod compare;
mod counts;
mod input;
mod l1;
mod l2;
mod references;
mod state;
mod stored;
mod sweep;
mod tables;
#[cfg(test)]
mod tests;

use std::cell::Cell;

use self::counts::Counts;
use self::input::Input;
use self::references::Everything;
use self::state::Check;
use super::header::{Header, Purpose};
use crate::check::{Reason, Summary, Visitor};
use crate::error::Result;
use crate::storage::HostFile;

/// Checks the structure of an image. Its content may be encrypted, and its data file missing.
pub(crate) fn check(file: &HostFile, visitor: &mut dyn Visitor) -> Result<Summary> {
    check_within(file, visitor, BUDGET)
}

/// Checks an image with at most this many bytes of memory for counts.
fn check_within(file: &HostFile, visitor: &mut dyn Visitor, budget: usize) -> Result<Summary> {
    let header = Header::read_for(file, Purpose::Check)?;
    let read = Cell::new(0);
    let input = Input { file, read: &read };
    let mut check = Check::new(input, &header, visitor)?;
    if check.clusters > MAX_CLUSTERS {
        check.unchecked("file", 0, Reason::Limit);
        return Ok(check.summary);
    }
    let everything = Everything::find(&mut check)?;
    let mut start = 0;
    // The file may end within the clusters of a table, so that the last one begins at its end.
    while start <= check.clusters && !check.is_stopped {
        check.counts = Counts::new(start..check.clusters + 1, budget);
        everything.count(&mut check)?;
        if !check.is_stopped {
            check.compare()?;
        }
        check.is_first = false;
        start = check.counts.window().end;
    }
    Ok(check.summary)
}

/// Memory for counts. It counts the clusters of 8 TiB of clusters of 64 KiB in one pass.
/// Limit in bytes.
const BUDGET: usize = 128 << 20;

/// Maximum number of clusters of a file that is checked, as in QEMU.
/// Limit in clusters.
const MAX_CLUSTERS: u64 = (1 << 31) - 1;
