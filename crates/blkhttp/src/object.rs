//! One object, opened.

use std::io;

use crate::{Error, ErrorKind, HttpOptions, Result, Url};

/// An object on a server, opened.
///
/// Several threads may read it at once.
#[derive(Debug)]
pub struct Object {
    url: Url,
}

/// What reading an object took so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Requests that were sent, retries included.
    pub requests: u64,
    /// Requests that were sent again.
    pub retries: u64,
    /// Bytes of content that were received.
    pub bytes: u64,
}

impl Object {
    /// Opens an object with one request, which gets its first bytes.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached, has no such object, does not allow reading it, or sends an invalid answer.
    pub fn open(url: &Url, _options: &HttpOptions) -> Result<Self> {
        Err(Error::new(ErrorKind::Unsupported, url, "is not read yet"))
    }

    /// Returns the URL that led to the object, after redirects.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the size in bytes. `None` if the server does not state it, which it may omit only without ranges.
    pub fn size(&self) -> Option<u64> {
        None
    }

    /// Returns whether the server has ranges. Without, bytes are read from the start to the end, once.
    pub fn has_ranges(&self) -> bool {
        false
    }

    /// Reads at most `buf.len()` bytes from `offset` on. Returns 0 at the end.
    ///
    /// Without ranges, `offset` is that of the bytes that were not read yet, or lies within the first MiB.
    ///
    /// # Errors
    ///
    /// Fails with an error that contains an [`Error`].
    pub fn read_at(&self, _buf: &mut [u8], _offset: u64) -> io::Result<usize> {
        Ok(0)
    }

    /// Announces that these bytes will be read once, soon, and in about the order of the calls. Never blocks.
    pub fn will_need(&self, _offset: u64, _length: u64) {}

    /// Returns the number of bytes that should be announced ahead of reads. May change while bytes are read.
    pub fn read_ahead(&self) -> u64 {
        0
    }

    /// Returns the reason if the object changed since it was opened, as far as the server said so.
    pub fn changed(&self) -> Option<String> {
        None
    }

    /// Returns what reading took so far.
    pub fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}
