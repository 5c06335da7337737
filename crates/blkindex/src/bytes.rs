//! Reads binary fields and tables.

use std::ops::Range;

use blkmap::{ReadAt, Result};

/// Returns the little-endian number at an offset of a record, which has it.
pub(crate) fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*record[at..].first_chunk().expect("a field inside the record"))
}

/// Reads a range of a file in parts, and passes each to `take` with its offset. A part has whole items of this length, if the
/// range has.
pub(crate) fn each_part(
    file: &dyn ReadAt,
    range: Range<u64>,
    item: usize,
    mut take: impl FnMut(u64, &mut [u8]) -> Result<()>,
) -> Result<()> {
    let mut part = vec![0; PART / item * item];
    let mut at = range.start;
    while at < range.end {
        let length = (range.end - at).min(part.len() as u64);
        let part = &mut part[..length as usize];
        file.read_exact_at(part, at)?;
        take(at, part)?;
        at += length;
    }
    Ok(())
}

/// Bytes of an index that are read at once.
const PART: usize = 128 << 10;
