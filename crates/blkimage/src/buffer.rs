//! Memory to read into.

/// A read buffer of one thread, aligned for direct I/O.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// Makes the buffer at least `length` bytes long. Discards its content if it has to grow.
    pub fn grow(&mut self, length: usize) {
        if self.length < length {
            self.bytes = vec![0; length + ALIGNMENT];
            // Without an aligned address, direct I/O falls back to copies.
            self.start = self.bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
            self.length = length;
        }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..][..self.length]
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.length]
    }
}

/// Alignment of buffers in bytes, enough for every device and file system in use.
pub(crate) const ALIGNMENT: usize = 4096;
