//! A mapped part of a file.

#![allow(unsafe_code)]

use std::fs::File;
use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering, fence};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::fault::{self, Watch};

/// A mapping, unmapped on drop.
#[derive(Debug)]
pub(super) struct Window {
    start: NonNull<u8>,
    length: usize,
    watch: Watch,
}

// SAFETY: the memory is read-only and belongs to no thread.
unsafe impl Send for Window {}

// SAFETY: as above.
unsafe impl Sync for Window {}

impl Window {
    /// Maps `length` bytes of `file` from `offset` on, which is a multiple of the page size. Returns
    /// `None` if the system refuses or the signal handler's table is full.
    pub fn map(file: &File, offset: u64, length: u64) -> Option<Self> {
        fault::install()?;
        let length = usize::try_from(length).ok()?;
        let (protection, flags) = (ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let start = unsafe { mmap(ptr::null_mut(), length, protection, flags, file, offset) };
        let start = NonNull::new(start.ok()?.cast::<u8>())?;
        let Some(watch) = Watch::new(start.as_ptr().expose_provenance(), length) else {
            // SAFETY: it was mapped above, and nothing refers to it yet.
            let _ = unsafe { munmap(start.as_ptr().cast(), length) };
            return None;
        };
        Some(Self { start, length, watch })
    }

    /// Returns the bytes. Bytes past the end of the file must not be accessed.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `start` and `length` describe a readable mapping that lives as long as `self`. This process does not
        // write to it. Another process may write to the file, but lent bytes are only hashed or compared, for which any
        // value is valid.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// Returns whether everything read from it came from the file.
    pub fn is_intact(&self) -> bool {
        // Orders the reads before the check.
        fence(Ordering::SeqCst);
        self.watch.is_intact()
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // Another mapping may get this address as soon as this one is gone, and its faults
        // must not be handled here.
        self.watch.end();
        // SAFETY: this value owns the mapping, and nothing borrows it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}
