//! macOS. Built and checked against its interface, and not run by the project.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::ioctl::{Getter, Opcode, ioctl, opcode};

use crate::posix;

pub use crate::bsd::{file_system, uses_of};
pub use crate::portable::*;

/// The name of this system.
pub const NAME: &str = "macOS";

/// The names under which libnbd may be installed: where the loader looks, by Homebrew, and by MacPorts.
pub const LIBNBD: &[&str] =
    &["libnbd.0.dylib", "/opt/homebrew/lib/libnbd.0.dylib", "/opt/local/lib/libnbd.0.dylib"];

/// Opens a second, independent description of the same file. `None` if another one has its name by now.
pub fn reopen(file: &File) -> Option<File> {
    let again = posix::open(&path_of(file).ok()?).ok()?;
    let is_same = stamp(&again).ok()?.identity == stamp(file).ok()?.identity;
    is_same.then_some(again)
}

/// Opens the same file for reads past the page cache.
pub fn reopen_direct(file: &File) -> Option<File> {
    reopen(file).filter(set_direct)
}

/// Returns the path of an open descriptor. The path may lead to another file by now.
///
/// # Errors
///
/// Fails if the file has no name any more.
pub fn path_of(fd: &impl AsFd) -> io::Result<PathBuf> {
    let path = rustix::fs::getpath(fd)?;
    Ok(std::ffi::OsString::from_vec(path.into_bytes()).into())
}

/// Reads past the page cache from now on. Returns `false` if the file system does not support it.
pub fn set_direct(file: &File) -> bool {
    rustix::fs::fcntl_nocache(file, true).is_ok()
}

/// Reads through the page cache from now on.
///
/// # Errors
///
/// Fails if the system refuses.
pub fn clear_direct(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fcntl_nocache(file, false)?)
}

/// Returns the size of a block device in bytes.
///
/// # Errors
///
/// Fails if it is no device.
#[allow(unsafe_code)]
pub fn device_size(file: &File) -> io::Result<u64> {
    // SAFETY: the call writes a number of this size.
    let count: u64 = unsafe { ioctl(file, Getter::<BLOCK_COUNT, u64>::new())? };
    count.checked_mul(block_size(file)?).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Returns the size of the blocks of a device in bytes.
///
/// # Errors
///
/// Fails if it is no device.
#[allow(unsafe_code)]
pub fn block_size(file: &File) -> io::Result<u64> {
    // SAFETY: the call writes a number of this size.
    let size: u32 = unsafe { ioctl(file, Getter::<BLOCK_SIZE, u32>::new())? };
    Ok(size.into())
}

/// Returns the open descriptors of this process. `None` if the system does not list them.
pub fn open_descriptors() -> Option<Vec<RawFd>> {
    let entries = std::fs::read_dir("/dev/fd").ok()?.flatten();
    Some(entries.filter_map(|it| it.file_name().to_str()?.parse().ok()).collect())
}

/// `DKIOCGETBLOCKSIZE`.
const BLOCK_SIZE: Opcode = opcode::read::<u32>(b'd', 24);

/// `DKIOCGETBLOCKCOUNT`.
const BLOCK_COUNT: Opcode = opcode::read::<u64>(b'd', 25);
