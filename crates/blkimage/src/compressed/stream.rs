//! The content of compressed bytes that are read once and in order.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::decoder::decoder;
use super::footer::Tail;
use super::limits::{Limited, limit, max_memory};
use crate::compression::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::options::OpenOptions;
use crate::storage::{self, Storage};

/// The content of a compressed file or pipe, from start to end.
///
/// Reading fails with [`io::ErrorKind::InvalidData`] if the stream is damaged, ends early or is followed by other bytes. All
/// that was read before is invalid then.
pub struct Decompressed<'a> {
    reader: Limited<Box<dyn Read + Send + 'a>>,
    compression: Compression,
    /// The last bytes that were read, if an image with a footer is refused.
    tail: Option<Tail>,
    file: Option<Arc<dyn Storage>>,
}

impl<'a> Decompressed<'a> {
    /// Decompresses what `reader` returns. Uses the limits of `options`, and refuses content that ends like an image of
    /// another format unless they have a format.
    ///
    /// # Errors
    ///
    /// Fails if there is not enough memory.
    pub fn new(
        compression: Compression,
        reader: impl Read + Send + 'a,
        options: &OpenOptions,
    ) -> io::Result<Self> {
        let reader = decoder(compression, reader, max_memory(options))?;
        let reader = Limited::new(reader, limit(options, 0));
        let tail = options.format.is_none().then(Tail::default);
        Ok(Self { reader, compression, tail, file: None })
    }

    /// Reads from a file that is checked for changes.
    pub(crate) fn of_file(self, file: Arc<dyn Storage>) -> Self {
        Self { file: Some(file), ..self }
    }

    /// Returns the compression.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Returns the size of the compressed file, `None` for a pipe.
    pub fn stored(&self) -> Option<u64> {
        self.file.as_ref().map(Storage::size)
    }

    /// Checks that the file did not change since it was opened. Called after the last read.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Changed`] if it did.
    pub fn check_unchanged(&self, name: &Path) -> Result<()> {
        match self.file.as_ref().and_then(Storage::changed) {
            Some(reason) => Err(Error::new(ErrorKind::Changed, name, reason)),
            None => Ok(()),
        }
    }

    /// Converts an error of reading the file `name`.
    pub fn error(name: &Path, error: io::Error) -> Error {
        storage::read_error(name, error, None)
    }

    /// Returns the error of the file `name`, if one of reading is about what was decompressed. `None` for the system's errors.
    pub fn decoding_error(name: &Path, error: &io::Error) -> Option<Error> {
        storage::decoding_error(name, error)
    }
}

impl Read for Decompressed<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let count = self.reader.read(buf)?;
        match &mut self.tail {
            Some(tail) if count == 0 => tail.check()?,
            Some(tail) => tail.push(&buf[..count]),
            None => {}
        }
        Ok(count)
    }
}
