//! State of a file's pages in the page cache, and advice about them.

#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;

use nix::libc;
use rustix::fs::{Advice, fadvise};

/// Returns the number of pages of the range that are in the page cache. Returns `None` if this is unknown: on Linux before 6.5,
/// or for a file that this process neither owns nor may write to.
pub fn cached_pages(file: &File, offset: u64, length: usize) -> Option<u64> {
    cachestat(file, offset, length as u64).map(|answer| answer.cached)
}

/// Returns whether the page cache holds nothing of the file that is not written back. Returns `false` if this is unknown.
pub fn is_clean(file: &File) -> bool {
    cachestat(file, 0, 0).is_some_and(|it| it.dirty == 0 && it.writeback == 0)
}

/// Writes the dirty pages of a file or device back, and waits until that is done.
pub fn write_out(file: &File) {
    let all = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: takes only numbers.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, all) };
    if result != 0 {
        let _ = file.sync_data();
    }
}

/// Returns whether no process has the file open for writing. Returns `false` if this is unknown. The
/// system reports it to the owner of the file and to root.
///
/// Tries to take a read lease, which the system grants only if there is no writer. The lease is
/// released at once. A process that opens the file for writing in between waits for the release, and
/// the signal about it is one that is ignored by default.
pub fn has_no_writer(file: &File) -> bool {
    let descriptor = file.as_raw_fd();
    // SAFETY: takes only numbers.
    unsafe {
        libc::fcntl(descriptor, F_SETSIG, libc::SIGURG) == 0
            && libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_RDLCK) == 0
            && libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_UNLCK) == 0
    }
}

/// Advises the kernel that the file is read sequentially. The kernel may ignore this.
pub fn advise_sequential(file: &File) {
    let _ = fadvise(file, 0, None, Advice::Sequential);
}

/// Drops clean pages of a file from the page cache.
pub fn drop_cached(file: &File) {
    let _ = fadvise(file, 0, None, Advice::DontNeed);
}

/// Queries the page cache. A length of 0 means up to the end of the file.
fn cachestat(file: &File, offset: u64, length: u64) -> Option<Cachestat> {
    let range = CachestatRange { offset, length };
    let mut answer = Cachestat::default();
    // SAFETY: both structures match the kernel's, and live until the call returns.
    let result = unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut answer, 0)
    };
    (result == 0).then_some(answer)
}

/// `struct cachestat_range` in `linux/mman.h`.
#[repr(C)]
struct CachestatRange {
    offset: u64,
    length: u64,
}

/// `struct cachestat` in `linux/mman.h`, in pages.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Selects the signal about a lease, instead of SIGIO, which would end the process.
const F_SETSIG: libc::c_int = 10;

/// The same number on every architecture. Not every libc defines it.
const SYS_CACHESTAT: libc::c_long = 451;
