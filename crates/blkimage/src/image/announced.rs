//! Announcements of bytes of files to which guest bytes are mapped.

use std::ops::Range;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use crate::storage::HostFile;

/// What an image announced last. Compressed clusters share sectors with their neighbours, which may be announced by the next
/// call.
#[derive(Debug, Default)]
pub(super) struct Announced(Mutex<(usize, Range<u64>)>);

impl Announced {
    /// Announces a range of a file, except for its start if that was announced just before.
    pub fn announce(&self, file: &HostFile, range: Range<u64>) {
        let file_number = ptr::from_ref(file).addr();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One that begins at the same place is of another pass.
        let is_behind = last.0 == file_number && last.1.start < range.start;
        let start = if is_behind && range.start < last.1.end { last.1.end } else { range.start };
        *last = (file_number, range.start..range.end.max(start));
        drop(last);
        if start < range.end {
            file.will_need(start, range.end - start);
        }
    }
}

#[cfg(test)]
mod tests;
