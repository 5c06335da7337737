//! The way around the page cache for files that it does not hold: nothing is copied out of it, nothing
//! else is driven out of it, and requests are as large as the reads are.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::direct::Bounce;
use crate::storage::local::page_cache::is_mostly_resident;
use crate::sys;

/// A file of which the page cache held little when it was opened.
pub(crate) struct PageCacheBypass {
    /// The same file once more, with O_DIRECT.
    file: File,
    bounce: Bounce,
    is_refused: AtomicBool,
}

impl PageCacheBypass {
    /// None: there is no other way, or no need of it.
    pub fn new(file: &File, size: u64) -> Option<Self> {
        let head = size.min(HEAD);
        if size < MIN_SIZE || is_mostly_resident(file, 0, head as usize)? {
            return None;
        }
        let file = sys::reopen_direct(file)?;
        Some(Self { file, bounce: Bounce::default(), is_refused: AtomicBool::new(false) })
    }

    /// Reads what the page cache does not hold, from `offset` on. None: it is better read through it.
    pub fn read_at_most(
        &self,
        cached: &File,
        buf: &mut [u8],
        offset: u64,
    ) -> Option<io::Result<usize>> {
        if buf.len() < MIN_READ || self.is_refused.load(Relaxed) {
            return None;
        }
        if is_mostly_resident(cached, offset, buf.len())? {
            return None;
        }
        match self.bounce.read_at_most(&self.file, buf, offset) {
            // Some file systems take the flag and refuse the reads.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.is_refused.store(true, Relaxed);
                None
            }
            result => Some(result),
        }
    }
}

/// Smaller files are likely to be read again, and soon read.
const MIN_SIZE: u64 = 64 << 20;

/// What is looked at of a file to tell whether the page cache holds it.
const HEAD: u64 = 64 << 20;

/// Smaller reads are those of tables and trees: the kernel reads ahead of them.
const MIN_READ: usize = 256 << 10;
