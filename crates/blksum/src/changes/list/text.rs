//! The text of a list, within limits.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use super::ListError;

/// A reader that fails after [`MAX_TEXT`] bytes. Its first bytes can be examined before it is read.
pub(super) struct Text<R> {
    source: BufReader<io::Chain<Cursor<Vec<u8>>, R>>,
    head: Vec<u8>,
    /// Number of bytes that may still be read.
    left: u64,
    /// Number of line breaks that were read through [`BufRead`].
    breaks: u64,
}

/// Maximum length of a list of changed extents, which is read as a stream. A record of EBS has 150 bytes.
/// Limit in bytes.
pub(super) const MAX_TEXT: u64 = 4 << 30;

/// Maximum length of a line, an element of XML or a string of JSON in such a list. A token of EBS has 256 bytes.
/// Limit in bytes.
pub(super) const MAX_TOKEN: usize = 4096;

/// Length of the head in bytes. The form shows in the first record.
const HEAD: u64 = 4096;

impl<R: Read> Text<R> {
    pub fn new(mut source: R) -> Result<Self, ListError> {
        let mut head = Vec::new();
        source.by_ref().take(HEAD).read_to_end(&mut head).map_err(ListError::Read)?;
        let source = BufReader::new(Cursor::new(head.clone()).chain(source));
        Ok(Self { source, head, left: MAX_TEXT, breaks: 0 })
    }

    /// Returns the first bytes of the text.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the number of the line that is read through [`BufRead`], from 1.
    pub fn line(&self) -> u64 {
        self.breaks + 1
    }

    /// Reads a line into `line`, with the line break, which only the last one lacks. Returns its number, from 1.
    pub fn read_line(&mut self, line: &mut Vec<u8>) -> Result<u64, ListError> {
        let number = self.line();
        line.clear();
        let read = self.by_ref().take(MAX_TOKEN as u64).read_until(b'\n', line);
        read.map_err(ListError::of_io)?;
        if line.len() == MAX_TOKEN && !line.ends_with(b"\n") {
            return Err(ListError::at_line(number, &format!("has more than {MAX_TOKEN} bytes")));
        }
        Ok(number)
    }
}

impl<R: Read> Read for Text<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A reader of JSON takes single bytes, and counts lines itself.
        let length = self.fill_buf()?.read(buffer)?;
        self.left -= length as u64;
        self.source.consume(length);
        Ok(length)
    }
}

impl<R: Read> BufRead for Text<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let bytes = self.source.fill_buf()?;
        if self.left == 0 && !bytes.is_empty() {
            return Err(io::Error::other(ListError::TooLong { limit: MAX_TEXT }));
        }
        Ok(&bytes[..usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len())])
    }

    fn consume(&mut self, length: usize) {
        self.left -= length as u64;
        let read = &self.source.buffer()[..length];
        self.breaks += read.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.source.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_refused() {
        for (length, left, fits) in [(9000, 9000, true), (9000, 8999, false), (10, 9, false)] {
            let mut text = Text::new(io::repeat(b' ').take(length)).unwrap();
            text.left = left;
            let mut read = Vec::new();
            let result = text.read_to_end(&mut read).map_err(ListError::of_io);
            assert_eq!(read.len() as u64, left);
            assert_eq!(result.is_ok(), fits);
            assert!(fits || matches!(result, Err(ListError::TooLong { .. })));
        }
    }
}
