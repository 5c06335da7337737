//! Reads a file allocation table.

use super::copies::Copies;
use super::heap::{FIRST, Heap};
use super::report::{Report, Structure};
use super::runs::{Builder, Runs};
use super::table::Table;
use crate::error::Result;
use crate::volume::Volume;

/// Reads the table for the clusters of `heap`. Reports its copies that differ, and what cannot be read.
///
/// # Errors
///
/// Fails if the visitor stops the walk.
pub(crate) fn read_table(
    table: &Table,
    volume: &Volume,
    heap: Heap,
    report: &mut Report<'_>,
) -> Result<Runs> {
    let mut builder = Builder::new(heap);
    let used = (u64::from(heap.limit()) * table.width.bits()).div_ceil(8).min(table.size);
    let mut copies = Copies::new(table, used);
    let (mut bytes, mut done) = (Vec::new(), 0);
    let mut reserved = FIRST;
    while done < used {
        let size = (used - done).min(CHUNK);
        bytes.resize(size as usize, 0);
        if !copies.read(volume, done, &mut bytes, report) {
            break;
        }
        report.advance(size)?;
        let is_room = table.width.decode(&bytes, |entry| {
            if reserved > 0 {
                reserved -= 1;
                return true;
            }
            builder.push(entry)
        });
        if !is_room {
            let structure = Structure::new("FAT", table.copy(table.active).saturating_add(done));
            report.skipped(structure, "has too many fragments");
            break;
        }
        done += size;
    }
    copies.finish(report);
    Ok(builder.finish())
}

/// Number of bytes that are read at once: whole entries of each width, as the largest table of FAT12 is shorter.
const CHUNK: u64 = 1 << 20;
