//! The blocks of devices.

use std::fs::File;
use std::io;

use rustix::fs::ioctl_blksszget;

/// Returns the size of the blocks of a device in bytes.
///
/// # Errors
///
/// Fails if it is no device.
pub fn block_size(file: &File) -> io::Result<u64> {
    Ok(ioctl_blksszget(file)?.into())
}
