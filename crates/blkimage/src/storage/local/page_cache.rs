//! State of a file's pages in the page cache.

use std::fs::File;

use crate::sys;

/// Returns whether all pages of the range are in the page cache. Returns `false` if this is unknown.
pub(crate) fn is_resident(file: &File, offset: u64, length: usize) -> bool {
    sys::cached_pages(file, offset, length).is_some_and(|cached| cached == pages(offset, length))
}

/// Returns whether at least half of the pages of the range are in the page cache. Returns
/// `None` if unknown.
pub(crate) fn is_mostly_resident(file: &File, offset: u64, length: usize) -> Option<bool> {
    sys::cached_pages(file, offset, length).map(|cached| 2 * cached >= pages(offset, length))
}

/// Returns the number of pages that the range touches.
fn pages(offset: u64, length: usize) -> u64 {
    let page = rustix::param::page_size() as u64;
    (offset + length as u64).div_ceil(page) - offset / page
}

/// Writes the dirty pages of a file back if a process may write to them without a fault, through an
/// existing mapping. The pages are then read-only until the next write, which updates the stamps of the
/// file. Pages that cannot be written back stay dirty.
///
/// A file that was just copied and closed is dirty as well, but need not be written back, because
/// no process has it open for writing or mapped. This is only checked for a private file
/// description and a local file.
pub(crate) fn write_back(file: &File, is_shared: bool) {
    if !sys::is_clean(file) && (is_shared || !sys::has_no_writer(file)) {
        sys::write_out(file);
    }
}
