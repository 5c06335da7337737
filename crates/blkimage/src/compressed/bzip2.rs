//! bzip2: streams one after the other.

use std::io::{self, Read};

use bzip2::{Decompress, Status};

use super::input::Input;

/// Decodes streams.
pub(super) struct Bzip2<R> {
    input: Input<R>,
    /// `None` between two streams.
    stream: Option<Decompress>,
    has_begun: bool,
}

impl<R: Read> Bzip2<R> {
    pub fn new(reader: R) -> Self {
        Self { input: Input::new(reader), stream: None, has_begun: false }
    }
}

impl<R: Read> Read for Bzip2<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while !buf.is_empty() {
            let bytes = self.input.fill()?;
            let is_over = bytes.is_empty();
            if is_over && self.stream.is_none() && self.has_begun {
                break;
            }
            let is_first = self.stream.is_none();
            let stream = self.stream.get_or_insert_with(|| Decompress::new(false));
            let before = (stream.total_in(), stream.total_out());
            let status = stream.decompress(bytes, buf);
            let count = (stream.total_out() - before.1) as usize;
            let taken = (stream.total_in() - before.0) as usize;
            match status {
                Ok(Status::StreamEnd) => self.stream = None,
                Ok(_) if count == 0 && is_over => return Err(self.input.truncated("bzip2")),
                Ok(_) => {}
                Err(_) if is_first && self.has_begun => return Err(self.input.trailing("bzip2")),
                Err(_) => return Err(self.input.damaged("bzip2 stream is damaged")),
            }
            self.input.consume(taken);
            self.has_begun = true;
            if count > 0 {
                return Ok(count);
            }
        }
        Ok(0)
    }
}
