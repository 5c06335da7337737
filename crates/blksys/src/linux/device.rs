//! Sizes of block devices.

use std::fs::File;
use std::io;

use rustix::fs::{SeekFrom, ioctl_blksszget};

/// Returns the size of a block device in bytes. Keeps the file offset.
///
/// # Errors
///
/// Fails if it is no device.
pub fn device_size(file: &File) -> io::Result<u64> {
    let position = rustix::fs::tell(file)?;
    let size = rustix::fs::seek(file, SeekFrom::End(0))?;
    rustix::fs::seek(file, SeekFrom::Start(position))?;
    Ok(size)
}

/// Returns the size of the blocks of a device in bytes.
///
/// # Errors
///
/// Fails if it is no device.
pub fn block_size(file: &File) -> io::Result<u64> {
    Ok(ioctl_blksszget(file)?.into())
}
