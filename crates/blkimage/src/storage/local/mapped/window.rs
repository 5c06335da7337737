//! A part of a file in memory.

#![allow(unsafe_code)]

use std::fs::File;
use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering, fence};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::fault::{self, Watch};

/// A mapping, unmapped when it is dropped.
#[derive(Debug)]
pub(super) struct Window {
    start: NonNull<u8>,
    length: usize,
    watch: Watch,
}

// SAFETY: the memory is read only and belongs to no thread.
unsafe impl Send for Window {}

// SAFETY: as above.
unsafe impl Sync for Window {}

impl Window {
    /// `length` bytes of `file` from `offset` on, which is a multiple of the page size. None: the
    /// system or the signal handler has no room for it.
    pub fn map(file: &File, offset: u64, length: u64) -> Option<Self> {
        fault::install()?;
        let length = usize::try_from(length).ok()?;
        let (protection, flags) = (ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: the kernel chooses the place, so nothing that is there already is replaced.
        let start = unsafe { mmap(ptr::null_mut(), length, protection, flags, file, offset) };
        let start = NonNull::new(start.ok()?.cast::<u8>())?;
        let Some(watch) = Watch::new(start.as_ptr().expose_provenance(), length) else {
            // SAFETY: it was mapped above, and nobody has seen it.
            let _ = unsafe { munmap(start.as_ptr().cast(), length) };
            return None;
        };
        Some(Self { start, length, watch })
    }

    /// The bytes. Those past the end of the file must not be touched.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `start` and `length` are those of a readable mapping that lives as long as we do.
        // Nobody writes to it here. Another process may, to the file: what is lent is only ever hashed
        // or compared, and no value of a byte is a wrong one for that.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// Whether everything that was read from it came from the file.
    pub fn is_intact(&self) -> bool {
        // What was read is read before this is asked.
        fence(Ordering::SeqCst);
        self.watch.is_intact()
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // Another mapping may lie here as soon as this one is gone: its faults are not ours.
        self.watch.end();
        // SAFETY: the mapping is ours, and nobody borrows it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}
