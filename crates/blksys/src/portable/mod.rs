//! What POSIX has, for systems of which nothing else is known. What it cannot tell, it does not claim.

mod event;
mod memory;
#[cfg(any(not(target_os = "freebsd"), blkhash_portable))]
mod open;
mod signals;
mod stamps;

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, RawFd};
use std::path::PathBuf;

use crate::file_systems::FileSystem;
use crate::uses::Uses;
use crate::volume::{Reply, Volume};

pub use self::event::Event;
pub use self::memory::memory_file;
#[cfg(any(not(target_os = "freebsd"), blkhash_portable))]
pub use self::open::{Found, find, find_beneath, open_folder, open_folder_beneath};
pub use self::signals::Signals;
pub use self::stamps::stamp_clock;
pub use crate::posix::{device_size, stamp, stamp_of};

/// The name of this system.
pub const NAME: &str = "this system";

/// The names under which libnbd may be installed.
pub const LIBNBD: &[&str] = &["libnbd.so.0"];

/// Whether the system tells which devices share bytes with others: partitions, and devices on top of others.
pub const TELLS_RELATED_DEVICES: bool = false;

/// Opens a second, independent description of the same file. Here none.
pub fn reopen(_: &File) -> Option<File> {
    None
}

/// Opens the same file for reads past the page cache. Here none.
pub fn reopen_direct(_: &File) -> Option<File> {
    None
}

/// Returns the path of an open descriptor. Here there is none.
///
/// # Errors
///
/// Always fails.
pub fn path_of(_: &impl AsFd) -> io::Result<PathBuf> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Reads past the page cache from now on. Here never.
pub fn set_direct(_: &File) -> bool {
    false
}

/// Reads through the page cache from now on, as always.
///
/// # Errors
///
/// Never fails.
pub fn clear_direct(_: &File) -> io::Result<()> {
    Ok(())
}

/// Returns whether reads go past the page cache. Here never.
pub fn is_direct(_: impl AsFd) -> bool {
    false
}

/// Returns the properties of the file system that holds a file. Here nothing is known.
pub fn file_system(_: &File) -> FileSystem {
    FileSystem::UNKNOWN
}

/// Returns the number of pages of the range that are in the page cache. Here it is unknown.
pub fn cached_pages(_: &File, _offset: u64, _length: usize) -> Option<u64> {
    None
}

/// Returns whether the page cache holds nothing of the file that is not written back. Here it is unknown.
pub fn is_clean(_: &File) -> bool {
    false
}

/// Returns whether no process has the file open for writing. Here it is unknown.
pub fn has_no_writer(_: &File) -> bool {
    false
}

/// Writes the dirty pages of a file or device back, and waits until that is done.
pub fn write_out(file: &File) {
    // Not the function of the standard library, which on macOS also waits for the cache of the disk.
    let _ = rustix::fs::fsync(file);
}

/// Advises the system that the file is read sequentially. Here it is not advised.
pub fn advise_sequential(_: &File) {}

/// Drops clean pages of a file from the page cache. Here they stay.
pub fn drop_cached(_: &File) {}

/// Takes a lock for reading on a byte. Here there are no locks of open files.
pub fn lock_byte(_: &File, _byte: i64) -> bool {
    false
}

/// Gives up a lock.
pub fn unlock_byte(_: &File, _byte: i64) {}

/// Returns whether another open file holds a lock on a byte. Here there are no locks of open files.
pub fn is_byte_locked(_: &File, _byte: i64) -> bool {
    false
}

/// Returns the size of the blocks of a device in bytes. Here it is unknown.
///
/// # Errors
///
/// Always fails.
pub fn block_size(_: &File) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the uses of a block device. Here they are unknown, and that is a warning.
pub fn uses_of(_number: (u32, u32)) -> Uses {
    Uses { writer: None, others: vec!["may be mounted: this system does not tell".into()] }
}

/// Returns a reason why a regular file may be written to other than by name. Here none is known.
pub fn writer_of_file(_identity: (u64, u64)) -> Option<String> {
    None
}

/// The writes to a block device so far. Here nothing counts them.
#[derive(Debug)]
pub enum Writes {}

impl Writes {
    /// Counts the writes to a device.
    pub fn to(_number: (u32, u32)) -> Option<Self> {
        None
    }

    /// Returns whether the device was written to since then.
    pub fn have_changed(&self) -> bool {
        match *self {}
    }
}

/// Returns the volume of a regular file. Here none is known.
pub fn volume_of(_: &File) -> Option<Volume> {
    None
}

/// Queries the extents of a file on its volume.
///
/// # Errors
///
/// Always fails.
pub fn volume_extents(_: &File, _start: u64, _length: u64, _write_back: bool) -> io::Result<Reply> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes a range of a file or device zero, and gives its storage back. Here it is written.
///
/// # Errors
///
/// Never fails.
pub fn punch_hole(_: &File, _offset: u64, _length: u64) -> io::Result<bool> {
    Ok(false)
}

/// Makes a range of a file or device zero without writing it. Here it is written.
///
/// # Errors
///
/// Never fails.
pub fn write_zeros(_: &File, _offset: u64, _length: u64) -> io::Result<bool> {
    Ok(false)
}

/// Makes `to` a file of the bytes of `from`, whose storage both share. Here they are copied.
pub fn share_storage(_from: impl AsFd, _to: &File) -> bool {
    false
}

/// Gives up opening files by name, for good. `None` if the system cannot.
pub fn enter_capability_mode() -> Option<io::Result<()>> {
    None
}

/// Returns the processors that this process may use.
pub fn allowed_cores() -> Vec<usize> {
    (0..std::thread::available_parallelism().map_or(1, usize::from)).collect()
}

/// Pins the current thread to a processor. Here never.
pub fn pin_to_core(_: usize) -> bool {
    false
}

/// Enlarges the buffer of a pipe. Here it stays as it is.
pub fn widen_pipe(_: impl AsFd, _size: usize) {}

/// Returns the open descriptors of this process. Here they are unknown.
pub fn open_descriptors() -> Option<Vec<RawFd>> {
    None
}

/// Clears memory in a child of this process. Here it stays.
///
/// # Errors
///
/// Always fails.
///
/// # Safety
///
/// The `length` bytes at `page` are mapped, private, and nothing but what bears to be zero in a child.
#[allow(unsafe_code)]
pub unsafe fn wipe_on_fork(_page: *mut c_void, _length: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
