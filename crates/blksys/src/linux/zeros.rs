//! Zeros that are not written.

use std::fs::File;
use std::io;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

/// Makes a range of a file or device zero, and gives its storage back. Returns `false` if that is not possible here.
///
/// # Errors
///
/// Fails if writing fails.
pub fn punch_hole(file: &File, offset: u64, length: u64) -> io::Result<bool> {
    allocate(file, FallocateFlags::PUNCH_HOLE, offset, length)
}

/// Makes a range of a file or device zero. Whether it is stored is left to the system. Returns `false` if that is not possible here.
///
/// # Errors
///
/// Fails if writing fails.
pub fn write_zeros(file: &File, offset: u64, length: u64) -> io::Result<bool> {
    allocate(file, FallocateFlags::ZERO_RANGE, offset, length)
}

fn allocate(file: &File, flags: FallocateFlags, offset: u64, length: u64) -> io::Result<bool> {
    loop {
        match fallocate(file, flags | FallocateFlags::KEEP_SIZE, offset, length) {
            Ok(()) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}
