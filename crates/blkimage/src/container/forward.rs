//! A stream as a storage in which reads go forward.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::storage::Storage;
use crate::tar;

/// A stream as a storage of unknown size, in which reads go forward.
pub(super) struct Forward(Mutex<Position>);

pub(super) type Stream = Box<dyn Read + Send>;

struct Position {
    stream: Stream,
    offset: u64,
    /// Zeros that were read past the end.
    past: u64,
}

impl Forward {
    /// Creates a storage of a stream, whose next byte is that at `offset`.
    pub fn new(stream: Stream, offset: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Position { stream, offset, past: 0 })))
    }

    /// Reads to the end. Returns the size.
    pub fn finish(&self) -> io::Result<u64> {
        let mut position = self.lock();
        let rest = io::copy(&mut position.stream, &mut io::sink())?;
        position.offset += rest;
        Ok(position.offset)
    }

    /// Takes the stream, and the offset of its next byte. The storage is empty then.
    #[cfg_attr(not(feature = "oci"), allow(dead_code))]
    pub fn take(&self) -> (Stream, u64) {
        let mut position = self.lock();
        let stream = std::mem::replace(&mut position.stream, Box::new(io::empty()));
        (stream, position.offset)
    }

    fn lock(&self) -> MutexGuard<'_, Position> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage for Forward {
    fn size(&self) -> u64 {
        i64::MAX as u64
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut position = self.lock();
        let Position { stream, offset: at, past } = &mut *position;
        let skipped = offset.checked_sub(*at).ok_or(io::ErrorKind::NotSeekable)?;
        let count = io::copy(&mut stream.by_ref().take(skipped), &mut io::sink())?;
        *at += count;
        let is_next = offset.is_multiple_of(tar::BLOCK)
            && (skipped - count).checked_sub(*past).is_some_and(|gap| gap < tar::BLOCK);
        let read = if count == skipped { stream.read(buf)? } else { 0 };
        *at += read as u64;
        if read == 0 && is_next {
            // Archives of umoci end without the padding and the zeros at the end of others.
            buf.fill(0);
            *past += buf.len() as u64;
            return Ok(buf.len());
        }
        Ok(read)
    }

    fn reads_forward(&self) -> bool {
        true
    }
}
