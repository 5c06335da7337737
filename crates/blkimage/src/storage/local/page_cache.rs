//! What of a file is in the page cache, and whether it is clean there.

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

/// Writes dirty pages of a file back if any process may write to them without a fault: through a mapping
/// that it made before. Each of these is read-only then until it is written to again, which the system
/// notes in the stamps of the file. What cannot be written back stays as it is.
///
/// A file that was copied and closed is dirty as well, and need not wait for its disk: no process has it
/// open for writing, or mapped so. That is only asked for a description of our own, of a file here.
pub(crate) fn write_back(file: &File, is_shared: bool) {
    let is_clean = cachestat(file, 0, 0).is_some_and(|it| it.dirty == 0 && it.writeback == 0);
    if is_clean || !is_shared && has_no_writer(file) {
        return;
    }
    write_out(file);
}

/// Writes dirty pages of a file or device to where they belong, and waits for that.
pub(crate) fn write_out(file: &File) {
    let all = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: takes nothing but numbers.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, all) };
    if result != 0 {
        let _ = file.sync_data();
    }
}

/// Whether no process has the file open for writing. False where the system does not tell: it does to the
/// owner of the file and to root.
///
/// A lease of a reader is only given then. It is given back at once; a process that opens the file for
/// writing meanwhile waits for that, and the signal about it is one that is ignored.
fn has_no_writer(file: &File) -> bool {
    let descriptor = file.as_raw_fd();
    // SAFETY: takes nothing but numbers.
    unsafe {
        libc::fcntl(descriptor, F_SETSIG, libc::SIGURG) == 0
            && libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_RDLCK) == 0
            && libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_UNLCK) == 0
    }
}

fn cached_pages(file: &File, offset: u64, length: usize) -> Option<u64> {
    cachestat(file, offset, length as u64).map(|answer| answer.cached)
}

/// A length of 0 is up to the end.
fn cachestat(file: &File, offset: u64, length: u64) -> Option<Cachestat> {
    let range = CachestatRange { offset, length };
    let mut answer = Cachestat::default();
    // SAFETY: both structures are those of the kernel, and live until the call returns.
    let result = unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut answer, 0)
    };
    (result == 0).then_some(answer)
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

/// What the system sends about a lease instead of SIGIO, which ends a process.
const F_SETSIG: libc::c_int = 10;

/// The same on every architecture; not every libc has a name for it.
const SYS_CACHESTAT: libc::c_long = 451;
