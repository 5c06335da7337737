//! A buffered reader of compressed bytes that knows where it is.

use std::io::{self, Read};

/// Reads compressed bytes through a buffer.
pub(super) struct Input<R> {
    reader: R,
    buffer: Box<[u8]>,
    range: std::ops::Range<usize>,
    /// Offset in the compressed file of the next byte that is consumed.
    position: u64,
}

impl<R: Read> Input<R> {
    /// Creates a reader of bytes that begin at `start` in the compressed file.
    pub fn new(reader: R, start: u64) -> Self {
        let buffer = vec![0; BUFFER_SIZE].into_boxed_slice();
        Self { reader, buffer, range: 0..0, position: start }
    }

    /// Returns bytes that were not consumed, reading some if there are none. Empty at the end.
    pub fn fill(&mut self) -> io::Result<&[u8]> {
        while self.range.is_empty() {
            match self.reader.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(count) => self.range = 0..count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[self.range.clone()])
    }

    pub fn consume(&mut self, count: usize) {
        self.range.start += count;
        self.position += count as u64;
    }

    /// Fails because the stream is damaged here.
    pub fn damaged(&self, what: &str) -> io::Error {
        damaged(format!("{what} near byte {} of the compressed file", self.position))
    }

    /// Fails because the stream ends here.
    pub fn truncated(&self, name: &str) -> io::Error {
        damaged(format!(
            "{name} stream is truncated: it ends at byte {} of the compressed file",
            self.position
        ))
    }

    /// Fails because other bytes follow the last stream.
    pub fn trailing(&self, name: &str) -> io::Error {
        // The other tools refuse them.
        let way = match name {
            "gzip" | "bzip2" | "lz4" => format!(", which `{name} -dc` in a pipe leaves out"),
            _ => String::new(),
        };
        damaged(format!(
            "{name} stream is followed by other bytes at byte {} of the compressed file{way}",
            self.position
        ))
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill()?;
        let count = bytes.len().min(buf.len());
        buf[..count].copy_from_slice(&bytes[..count]);
        self.consume(count);
        Ok(count)
    }
}

pub(super) fn damaged(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

/// Returns the error of a stream that asks for more memory than the limit.
pub(super) fn too_much_memory(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, format!("{what} than the limit of memory"))
}

/// Large enough that reads cost little compared with decoding, small enough for a cache.
const BUFFER_SIZE: usize = 128 << 10;
