//! Where a copy goes. A file for each kind.

mod local;
#[cfg(feature = "nbd")]
mod nbd;

use std::io;
use std::os::fd::BorrowedFd;

use blkimage::Image;

pub use self::local::Local;
#[cfg(feature = "nbd")]
pub use self::nbd::Export;
use crate::Error;

/// The destination of a copy, which can be written at any offset by several threads at once.
pub trait Destination: Send + Sync {
    /// Makes room for `size` bytes, or as many as will come if that is not known. With `keeps`, what the destination holds
    /// stays. Returns whether all of it is zero for certain.
    ///
    /// # Errors
    ///
    /// Fails if there is no room, or the destination cannot be changed.
    fn begin(&mut self, size: Option<u64>, keeps: bool) -> Result<bool, Error>;

    /// Returns whether the destination can become smaller and larger.
    fn can_resize(&self) -> bool;

    /// Writes all of `bytes` from `offset` on.
    ///
    /// # Errors
    ///
    /// Fails if not all of them could be written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes bytes read as zeros without sending them. Returns `false` if the destination cannot do that.
    ///
    /// # Errors
    ///
    /// Fails if it can and did not.
    fn zero(&self, offset: u64, length: u64, how: Zeroing) -> io::Result<bool>;

    /// Makes the destination a file of the bytes of `file`, whose storage both share. Returns `false` if that is not possible.
    /// Then it may hold a part of them.
    fn share(&self, file: BorrowedFd<'_>) -> bool {
        let _ = file;
        false
    }

    /// Ends a copy of `size` bytes, and returns when everything that was written is where it stays.
    ///
    /// # Errors
    ///
    /// Fails if something could not be written.
    fn end(&self, size: u64) -> io::Result<()>;

    /// Returns what brings everything that was written so far to where it stays, for the log of the copy.
    ///
    /// # Errors
    ///
    /// Fails if the system has no more descriptors.
    fn syncer(&self) -> io::Result<Syncer>;

    /// Returns the content as it is now. It may change.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    fn current(&self) -> blkimage::Result<Image>;

    /// Returns the content after the last write, around caches of this host where that is possible. Locks of the destination
    /// last until it is dropped.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read, or is in use.
    fn read_back(&self) -> blkimage::Result<Image>;
}

/// Returns when everything that was written before is where it stays.
pub type Syncer = Box<dyn Fn() -> io::Result<()> + Send>;

/// The way in which bytes become zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeroing {
    /// As is cheapest.
    Any,
    /// They must be deallocated.
    Punch,
}
