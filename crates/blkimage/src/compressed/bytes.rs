//! Reads the bytes of a compressed file.

use std::io::{self, Read};
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::storage::Storage;
use crate::storage::ahead::Ahead;

/// Reads a part of a file, from its start to its end.
pub(crate) struct Bytes<S> {
    storage: S,
    range: Range<u64>,
    announces: Option<(Ahead, Arc<AtomicBool>)>,
}

impl<S> Bytes<S> {
    pub fn new(storage: S, range: Range<u64>) -> Self {
        Self { storage, range, announces: None }
    }

    /// Announces the bytes before they are read, while the flag is set. Those up to `announced` were announced before.
    #[must_use]
    pub fn announced_if(self, flag: Arc<AtomicBool>, announced: u64) -> Self {
        Self { announces: Some((Ahead::behind(announced), flag)), ..self }
    }

    /// Returns whether all bytes were read.
    pub fn is_over(&self) -> bool {
        self.range.is_empty()
    }

    /// Announces the bytes before they are read.
    #[must_use]
    pub fn announced(self) -> Self {
        self.announced_if(Arc::new(AtomicBool::new(true)), 0)
    }
}

impl<S: Deref<Target: Storage>> Read for Bytes<S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let Range { start, end } = self.range;
        let length = (end - start).min(buf.len() as u64) as usize;
        if length == 0 {
            return Ok(0);
        }
        if let Some((ahead, flag)) = &mut self.announces
            && flag.load(Relaxed)
        {
            ahead.announce(&*self.storage, start, end);
        }
        let count = self.storage.read_at_most(&mut buf[..length], start)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.range.start += count as u64;
        Ok(count)
    }
}
