//! Reads that bypass the page cache: O_DIRECT wants the offset, the length and the memory aligned.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

/// Buffers for reads that are not aligned.
#[derive(Default)]
pub(crate) struct Bounce {
    free: Mutex<Vec<Aligned>>,
}

impl Bounce {
    /// Reads from a file that was opened with O_DIRECT. 0 is the end of the file.
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
        let result = file.read_at(&mut bounce.bytes()[..length], offset - skip as u64);
        let result = result.map(|read| {
            let count = read.saturating_sub(skip).min(buf.len());
            buf[..count].copy_from_slice(&bounce.bytes()[skip..skip + count]);
            count
        });
        self.give_back(bounce);
        result
    }

    fn take(&self) -> Aligned {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.pop().unwrap_or_else(|| Aligned(vec![0; BOUNCE_SIZE + ALIGNMENT]))
    }

    fn give_back(&self, bounce: Aligned) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < MAX_FREE {
            free.push(bounce);
        }
    }
}

/// Memory with an aligned stretch of `BOUNCE_SIZE` bytes in it.
struct Aligned(Vec<u8>);

impl Aligned {
    fn bytes(&mut self) -> &mut [u8] {
        let start = self.0.as_ptr().align_offset(ALIGNMENT);
        &mut self.0[start..start + BOUNCE_SIZE]
    }
}

/// Enough for every device and file system in use.
pub(crate) const ALIGNMENT: usize = 4096;

/// One request of this size keeps a device busy for longer than it takes to issue the next.
const BOUNCE_SIZE: usize = 512 << 10;

/// Buffers that are kept for later; more threads than this allocate theirs.
const MAX_FREE: usize = 8;
