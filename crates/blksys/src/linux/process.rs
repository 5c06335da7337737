//! What this process has: descriptors, files in memory, pipes, pages.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, RawFd};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{Advice, madvise};

/// The name of this system.
pub const NAME: &str = "Linux";

/// Creates a file in memory. The name is only for people.
///
/// # Errors
///
/// Fails if there are no more descriptors.
pub fn memory_file(name: &str) -> io::Result<File> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

/// Enlarges the buffer of a pipe to `size` bytes, if `file` is one and the system allows it.
pub fn widen_pipe(file: impl AsFd, size: usize) {
    let _ = rustix::pipe::fcntl_setpipe_size(file, size);
}

/// Returns the open descriptors of this process. `None` if the system does not list them.
pub fn open_descriptors() -> Option<Vec<RawFd>> {
    let entries = std::fs::read_dir("/proc/self/fd").ok()?.flatten();
    Some(entries.filter_map(|it| it.file_name().to_str()?.parse().ok()).collect())
}

/// Gives up opening files by name, for good. Here never: blksandbox has rules for files.
pub fn enter_capability_mode() -> Option<io::Result<()>> {
    None
}

/// Clears memory in a child of this process. It is whole pages.
///
/// # Errors
///
/// Fails if the kernel is older than 4.14.
///
/// # Safety
///
/// The `length` bytes at `page` are mapped, private, and nothing but what bears to be zero in a child.
pub unsafe fn wipe_on_fork(page: *mut c_void, length: usize) -> io::Result<()> {
    // SAFETY: the caller's promise.
    unsafe { madvise(page, length, Advice::LinuxWipeOnFork)? };
    Ok(())
}
