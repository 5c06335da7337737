//! Limits of what is decoded.

use std::io::{self, Read};

use crate::options::{DEFAULT_MAX_ZEROS, OpenOptions};

/// Limits of one file.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Maximum size of the content.
    pub max_content: u64,
    /// Maximum size of a dictionary or window, and of what is decoded ahead with the tables for it.
    pub max_memory: u64,
}

impl Limits {
    /// Returns the limits of a file with `stored` bytes.
    pub fn new(options: &OpenOptions, stored: u64) -> Self {
        let max_zeros = options.max_zeros.unwrap_or(DEFAULT_MAX_ZEROS);
        Self {
            max_content: stored.saturating_add(max_zeros),
            max_memory: options.max_memory.unwrap_or(DEFAULT_MAX_MEMORY),
        }
    }
}

/// A reader that fails if there is more than a number of bytes.
pub(super) struct Limited<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Limited<R> {
    pub fn new(reader: R, limit: u64) -> Self {
        Self { reader, left: limit }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buf)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(too_large)?;
        Ok(count)
    }
}

pub(super) fn too_large() -> io::Error {
    let reason = "has far more content than it stores, and all of it would be decoded";
    io::Error::new(io::ErrorKind::FileTooLarge, reason)
}

/// Default maximum size of the window of a decoder, and of what is decoded ahead with the table of
/// the units. Enough for all levels of xz and for the windows that `zstd` accepts without an
/// option.
/// Limit in bytes.
const DEFAULT_MAX_MEMORY: u64 = 256 << 20;
