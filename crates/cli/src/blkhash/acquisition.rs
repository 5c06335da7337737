//! The lines of `blkhash info` about forensic images.

use blkimage::{Acquisition, Stated};

use crate::quote;
use crate::size::Bytes;

/// Describes how an image was acquired. `line` adds a line with a label.
pub fn lines(found: &Acquisition, stated: &Stated, line: &mut impl FnMut(&str, String)) {
    let compression =
        found.compression.map_or(String::new(), |name| format!(", compression {name}"));
    line("chunks", format!("{} of {}{compression}", found.chunks, Bytes(found.chunk_size)));
    let kind = if found.is_physical { "device" } else { "volume" };
    let medium = found.medium.unwrap_or("other");
    line("medium", format!("{medium} {kind}, sectors of {} bytes", found.sector_size));
    for field in &found.case {
        let value: String = field.value.chars().take(MAX_VALUE).collect();
        let more = if value.len() < field.value.len() { "..." } else { "" };
        line(field.label, quote::printable(&value) + more);
    }
    for digest in &stated.digests {
        line(digest.algorithm, blkrecord::hex(&digest.digest));
    }
    let more = found.more_errors;
    for range in found.errors.iter().take(MAX_ERRORS) {
        let length = range.end - range.start;
        line("unread", format!("{length} bytes at {}, when it was acquired", range.start));
    }
    let hidden = found.errors.len().saturating_sub(MAX_ERRORS) as u64 + more;
    if hidden > 0 {
        line("", format!("... {hidden} more: --json lists the first 1000"));
    }
}

/// Maximum number of ranges with errors of the acquisition that are printed.
/// Limit in ranges.
const MAX_ERRORS: usize = 10;

/// Maximum number of characters of a field of the case data that are printed.
/// Limit in characters.
const MAX_VALUE: usize = 1000;
