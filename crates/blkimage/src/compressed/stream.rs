//! The content of compressed bytes that are read once and in order.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::decoder::decoder;
use super::footer::Tail;
use super::limits::{Limited, Limits};
use crate::compression::Compression;
use crate::error::{Error, ErrorKind};
use crate::options::OpenOptions;
use crate::storage::{self, Storage};

/// The content of a compressed file or pipe, from start to end.
///
/// Reading fails if the stream is damaged, ends early or is followed by other bytes, if it asks for too much memory, and at the
/// end if the file changed. All that was read before is invalid then. The [`io::Error`] contains an [`Error`].
pub struct Decompressed<'a> {
    reader: Limited<Box<dyn Read + Send + 'a>>,
    name: PathBuf,
    compression: Compression,
    /// The last bytes that were read, if an image with a footer is refused.
    tail: Option<Tail>,
    file: Option<Arc<dyn Storage>>,
}

impl<'a> Decompressed<'a> {
    /// Decompresses what `reader` returns. Uses the limits of `options`, and refuses content that ends like an image of
    /// another format unless they have a format. `name` is the name used in errors.
    ///
    /// # Errors
    ///
    /// Fails if there is not enough memory.
    pub fn new(
        compression: Compression,
        reader: impl Read + Send + 'a,
        options: &OpenOptions,
        name: &Path,
    ) -> io::Result<Self> {
        let limits = Limits::new(options, 0);
        let reader = decoder(compression, reader, 0, limits.max_memory, true)?;
        let reader = Limited::new(reader, limits.max_content);
        let tail = options.format.is_none().then(Tail::default);
        Ok(Self { reader, name: name.into(), compression, tail, file: None })
    }

    /// Reads from a file that is checked for changes.
    pub(crate) fn of_file(self, file: Arc<dyn Storage>) -> Self {
        Self { file: Some(file), ..self }
    }

    /// Returns the compression.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Checks what can only be checked at the end.
    fn finish(&self) -> io::Result<()> {
        if let Some(reason) = self.file.as_ref().and_then(Storage::changed) {
            return Err(io::Error::other(Error::new(ErrorKind::Changed, &self.name, reason)));
        }
        self.tail.as_ref().map_or(Ok(()), |tail| tail.check(Some(self.compression)))
    }
}

impl Read for Decompressed<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let count = match self.reader.read(buf) {
            Ok(0) => self.finish().map(|()| 0),
            read => read,
        };
        let count = count.map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ if error
                .get_ref()
                .is_some_and(<dyn std::error::Error + Send + Sync>::is::<Error>) =>
            {
                error
            }
            _ => io::Error::other(storage::read_error(&self.name, error, None)),
        })?;
        if let Some(tail) = &mut self.tail {
            tail.push(&buf[..count]);
        }
        Ok(count)
    }
}
