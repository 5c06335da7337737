//! Reads of a file that a check may go past.

use std::cell::Cell;

use crate::error::{Error, Result};
use crate::storage::HostFile;

/// The file of an image. Bytes past its end are zeros, as in QEMU.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub file: &'a HostFile,
    /// Number of bytes that were read and not reported.
    pub read: &'a Cell<u64>,
}

impl Input<'_> {
    /// Fills `buf` from `offset` on. Returns why these bytes cannot be read, if only they cannot.
    pub fn read(self, buf: &mut [u8], offset: u64) -> Result<Option<Error>> {
        let available = self.file.size().saturating_sub(offset).min(buf.len() as u64) as usize;
        let (head, rest) = buf.split_at_mut(available);
        rest.fill(0);
        self.read.set(self.read.get().saturating_add(available as u64));
        match self.file.read_exact_at(head, offset) {
            Ok(()) => Ok(None),
            Err(error) if error.is_of_bytes() => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    /// Passes the entries of a table of `count` entries that are not 0 to `visit`, with their indexes. Returns why the rest
    /// of the table cannot be read, if it cannot.
    pub fn for_each_entry(
        self,
        offset: u64,
        count: u64,
        mut visit: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<Option<Error>> {
        let length = (count * 8).min(self.file.size().saturating_sub(offset).next_multiple_of(8));
        let mut window = vec![0; length.min(WINDOW) as usize];
        for start in (0..length).step_by(WINDOW as usize) {
            let window = &mut window[..(length - start).min(WINDOW) as usize];
            if let Some(error) = self.read(window, offset + start)? {
                return Ok(Some(error));
            }
            for (index, bytes) in (start / 8..).zip(window.as_chunks().0) {
                let entry = u64::from_be_bytes(*bytes);
                if entry != 0 {
                    visit(index, entry)?;
                }
            }
        }
        Ok(None)
    }
}

/// Number of bytes of a table that are read at once.
const WINDOW: u64 = 256 << 10;
