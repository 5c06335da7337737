//! Hand-made images for tests, built field by field, and how they are refused.

use crate::error::{Error, ErrorKind, Result};
use crate::probe::Format;
use crate::storage::Memory;
use crate::{ExtentKind, Image, OpenOptions, Source};

/// A file in memory.
#[derive(Clone)]
pub(crate) struct Bytes(pub Vec<u8>);

impl Bytes {
    pub fn new(size: usize) -> Self {
        Self(vec![0; size])
    }

    pub fn put(mut self, at: usize, bytes: &[u8]) -> Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    pub fn fill(self, at: usize, length: usize, byte: u8) -> Self {
        self.put(at, &vec![byte; length])
    }

    pub fn le32(self, at: usize, number: u32) -> Self {
        self.put(at, &number.to_le_bytes())
    }

    pub fn le64(self, at: usize, number: u64) -> Self {
        self.put(at, &number.to_le_bytes())
    }

    pub fn be32(self, at: usize, number: u32) -> Self {
        self.put(at, &number.to_be_bytes())
    }

    pub fn be64(self, at: usize, number: u64) -> Self {
        self.put(at, &number.to_be_bytes())
    }

    /// Removes what is past `size`.
    pub fn cut(mut self, size: usize) -> Self {
        self.0.truncate(size);
        self
    }

    pub fn open(self, format: Format) -> Result<Image> {
        self.open_with(&OpenOptions::new().format(format))
    }

    pub fn open_with(self, options: &OpenOptions) -> Result<Image> {
        options.open_storage(Box::new(Memory(self.0)), "test")
    }

    /// Returns all content.
    pub fn content(self, format: Format) -> Result<Vec<u8>> {
        let image = self.open(format)?;
        let mut content = vec![0xee; image.size() as usize];
        image.read_exact_at(&mut content, 0)?;
        Ok(content)
    }

    /// Checks that opening or reading the image fails, with these words.
    #[track_caller]
    pub fn refused(self, format: Format, kind: ErrorKind, says: &str) {
        let error = self.content(format).err().unwrap();
        assert!(error.reason().contains(says), "{error}");
        assert_eq!(error.kind(), kind, "{error}");
    }
}

/// A hand-made image that can be opened.
pub(crate) trait Built {
    fn open(&self) -> Result<Image>;
}

/// Fails unless opening is refused with this kind of error and this text.
#[track_caller]
pub(crate) fn refused(image: &impl Built, kind: ErrorKind, says: &str) -> Error {
    let error = image.open().err().expect("image is refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(says), "{error}");
    error
}

#[track_caller]
pub(crate) fn corrupt(image: &impl Built, says: &str) {
    refused(image, ErrorKind::Corrupt, says);
}

/// Fails unless reading a byte is refused as corrupt with this text. Its extent must be
/// refused as well or be data.
#[track_caller]
pub(crate) fn unreadable(image: &impl Built, guest: u64, says: &str) {
    let image = image.open().unwrap();
    let error = image.read_exact_at(&mut [0], guest).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains(says), "{error}");
    if let Ok(extent) = image.extent(guest, 1) {
        assert_eq!(extent.kind, ExtentKind::Data);
    }
}

/// Returns the guest byte at an offset.
#[track_caller]
pub(crate) fn byte(image: &impl Built, guest: u64) -> u8 {
    let mut byte = [0xee];
    image.open().unwrap().read_exact_at(&mut byte, guest).unwrap();
    byte[0]
}
