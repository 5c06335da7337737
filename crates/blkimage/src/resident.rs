//! What of a file is in the page cache.

#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;

use nix::libc;

/// Whether all pages of the range are in the page cache. False where nobody tells: Linux before 6.5,
/// or a file that is neither ours nor ours to write to.
pub(crate) fn is_resident(file: &File, offset: u64, length: usize) -> bool {
    cached_pages(file, offset, length).is_some_and(|cached| cached == pages(offset, length))
}

/// Whether half of the pages of the range or more are in the page cache. None where nobody tells.
pub(crate) fn is_mostly_resident(file: &File, offset: u64, length: usize) -> Option<bool> {
    cached_pages(file, offset, length).map(|cached| 2 * cached >= pages(offset, length))
}

/// Pages that the range touches.
fn pages(offset: u64, length: usize) -> u64 {
    let page = rustix::param::page_size() as u64;
    (offset + length as u64).div_ceil(page) - offset / page
}

fn cached_pages(file: &File, offset: u64, length: usize) -> Option<u64> {
    let range = CachestatRange { offset, length: length as u64 };
    let mut answer = Cachestat::default();
    // SAFETY: both structures are those of the kernel, and live until the call returns.
    let result = unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut answer, 0)
    };
    (result == 0).then_some(answer.cached)
}

/// `struct cachestat_range` of `linux/mman.h`.
#[repr(C)]
struct CachestatRange {
    offset: u64,
    length: u64,
}

/// `struct cachestat` of `linux/mman.h`, in pages.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The same on every architecture; not every libc has a name for it.
const SYS_CACHESTAT: libc::c_long = 451;
