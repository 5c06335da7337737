//! Standard output of findings, which come from any thread and cannot fail.

use std::io::{self, IsTerminal, Write};

use crate::stdio::Stdout;

/// Standard output. A write error is kept until the end.
pub struct Out {
    to: Box<dyn Write + Send>,
    buffer: Vec<u8>,
    capacity: usize,
    result: io::Result<()>,
}

impl Out {
    /// Writes each text at once.
    pub fn unbuffered() -> Self {
        Self::new(Box::new(Stdout), 0)
    }

    /// Buffers texts unless they go to a terminal.
    pub fn buffered() -> Self {
        let capacity = if rustix::stdio::stdout().is_terminal() { 0 } else { BUFFER };
        Self::new(Box::new(Stdout), capacity)
    }

    /// Buffers this many bytes.
    pub fn new(to: Box<dyn Write + Send>, capacity: usize) -> Self {
        Self { to, buffer: Vec::new(), capacity, result: Ok(()) }
    }

    /// Returns whether a write failed. Nothing is written from then on.
    pub fn has_failed(&self) -> bool {
        self.result.is_err()
    }

    /// Writes a text, or keeps it for later.
    pub fn write(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
        if self.buffer.len() > self.capacity {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.result.is_ok() && !self.buffer.is_empty() {
            self.result = self.to.write_all(&self.buffer);
        }
        self.buffer.clear();
    }

    /// Writes the rest.
    ///
    /// # Errors
    ///
    /// Fails if this or any earlier output could not be written.
    pub fn end(mut self) -> io::Result<()> {
        self.flush();
        self.result
    }
}

/// Size of the buffer in bytes.
const BUFFER: usize = 32 << 10;
