/// Memory that a thread reads into, aligned for direct I/O.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    /// Makes it at least `length` bytes long. What it held is lost.
    pub(crate) fn grow(&mut self, length: usize) {
        if self.as_ref().len() < length {
            self.bytes = vec![0; length + ALIGNMENT];
            self.start = self.bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes
            .get(self.start..self.bytes.len().saturating_sub(ALIGNMENT) + self.start)
            .unwrap_or_default()
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        let end = self.bytes.len().saturating_sub(ALIGNMENT) + self.start;
        self.bytes.get_mut(self.start..end).unwrap_or_default()
    }
}

/// The logical block size of every disk in use is this or less.
const ALIGNMENT: usize = 4096;
