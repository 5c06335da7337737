//! Reads around the page cache for files that it does not hold. They save a copy, evict no other
//! content, and use requests of the full size of the reads.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::direct::Bounce;
use crate::storage::local::page_cache::is_mostly_resident;
use crate::sys;

/// A file that was mostly not in the page cache when it was opened.
pub(crate) struct PageCacheBypass {
    /// Second description of the same file, with O_DIRECT.
    file: File,
    bounce: Bounce,
    is_refused: AtomicBool,
}

impl PageCacheBypass {
    /// Returns `None` if a bypass is not possible or not useful.
    pub fn new(file: &File, size: u64) -> Option<Self> {
        let head = size.min(HEAD);
        if size < MIN_SIZE || is_mostly_resident(file, 0, head as usize)? {
            return None;
        }
        let file = sys::reopen_direct(file)?;
        Some(Self { file, bounce: Bounce::default(), is_refused: AtomicBool::new(false) })
    }

    /// Reads from `offset` on around the page cache. Returns `None` if the caller should read through it.
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
            // Some file systems accept the flag and refuse the reads.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.is_refused.store(true, Relaxed);
                None
            }
            result => Some(result),
        }
    }
}

/// Minimum size of a file in bytes. Smaller ones are likely to be read again and take little time.
const MIN_SIZE: u64 = 64 << 20;

/// Number of bytes at the start of a file that are checked for being in the page cache.
const HEAD: u64 = 64 << 20;

/// Minimum length of a read in bytes. Smaller reads are of tables and trees, and benefit from the
/// kernel's read-ahead.
const MIN_READ: usize = 256 << 10;
