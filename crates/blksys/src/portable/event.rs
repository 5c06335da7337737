//! A descriptor that wakes up the thread that polls it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A descriptor that is readable from [`set`](Self::set) to [`clear`](Self::clear).
#[derive(Debug)]
pub struct Event {
    read: OwnedFd,
    write: OwnedFd,
}

impl Event {
    /// Creates one that is not set.
    ///
    /// # Errors
    ///
    /// Fails if there are no more descriptors.
    pub fn new() -> io::Result<Self> {
        let (read, write) = io::pipe()?;
        rustix::io::ioctl_fionbio(&read, true)?;
        rustix::io::ioctl_fionbio(&write, true)?;
        Ok(Self { read: read.into(), write: write.into() })
    }

    /// Makes the descriptor readable.
    pub fn set(&self) {
        // Fails only if the pipe is full, and then the descriptor is readable already.
        let _ = rustix::io::write(&self.write, &[0; 8]);
    }

    /// Makes the descriptor not readable.
    pub fn clear(&self) {
        while rustix::io::read(&self.read, &mut [0; 512]).is_ok_and(|count| count > 0) {}
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}
