//! Reads that bypass the page cache. O_DIRECT requires an aligned offset, length and buffer.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use crate::buffer::{ALIGNMENT, Buffer};

/// Buffers for unaligned reads.
#[derive(Default)]
pub(crate) struct Bounce {
    free: Mutex<Vec<Buffer>>,
}

impl Bounce {
    /// Reads from a file that was opened with O_DIRECT. Returns 0 at the end of the file.
    pub fn read_at_most(&self, file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let whole = buf.len() / ALIGNMENT * ALIGNMENT;
        if whole > 0
            && offset.is_multiple_of(ALIGNMENT as u64)
            && buf.as_ptr().align_offset(ALIGNMENT) == 0
        {
            return file.read_at(&mut buf[..whole], offset);
        }
        let mut bounce = self.take();
        let skip = (offset % ALIGNMENT as u64) as usize;
        let length = (skip + buf.len()).next_multiple_of(ALIGNMENT).min(BOUNCE_SIZE);
        let result = file.read_at(&mut bounce.as_mut()[..length], offset - skip as u64);
        let result = result.map(|read| {
            let count = read.saturating_sub(skip).min(buf.len());
            buf[..count].copy_from_slice(&bounce.as_mut()[skip..skip + count]);
            count
        });
        self.give_back(bounce);
        result
    }

    fn take(&self) -> Buffer {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bounce = free.pop().unwrap_or_default();
        bounce.grow(BOUNCE_SIZE);
        bounce
    }

    fn give_back(&self, bounce: Buffer) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < MAX_FREE {
            free.push(bounce);
        }
    }
}

/// Size of a buffer in bytes. A request of this size keeps a device busy until the next one is issued.
const BOUNCE_SIZE: usize = 512 << 10;

/// Maximum number of idle buffers. With more threads, some buffers are allocated again.
const MAX_FREE: usize = 8;
