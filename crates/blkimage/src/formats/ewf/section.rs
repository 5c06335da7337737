//! Sections: a descriptor with a type, the offset of the next section and a size, and the data after it.

use libdeflater::adler32;

use crate::error::{ErrorKind, Result, excerpt};
use crate::formats::fields::Head;
use crate::storage::HostFile;

/// A section of a segment.
pub(super) struct Section<'a> {
    file: &'a HostFile,
    /// Its type, without the NUL bytes after it.
    pub kind: Vec<u8>,
    /// Offset of the descriptor.
    pub offset: u64,
    /// Offset of the byte after its data.
    pub end: u64,
    /// Offset of the next section. The last section has its own offset.
    pub next: u64,
}

impl<'a> Section<'a> {
    /// Reads the descriptor at `offset`, and compares its Adler-32.
    pub fn read(file: &'a HostFile, offset: u64) -> Result<Self> {
        if offset.checked_add(DESCRIPTOR).is_none_or(|end| end > file.size()) {
            let reason = "ends where a section should begin: it was probably cut off";
            return Err(file.corrupt(reason).at(offset));
        }
        let head = Head::read(file, offset, DESCRIPTOR as usize)?;
        check_sum(file, head.bytes(), offset, "descriptor of a section")?;
        let kind = &head.bytes()[..16];
        let kind = kind.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        let (next, size) = (head.le64(16), head.le64(24));
        let invalid = |reason: String| Err(file.corrupt(reason).at(offset));
        let name = || excerpt(&kind);
        let is_last = matches!(&kind[..], b"next" | b"done");
        if !is_last && (next < offset + DESCRIPTOR || next > file.size()) {
            return invalid(format!("its section \"{}\" has no place for the next one", name()));
        }
        let end = match size {
            _ if is_last => offset + DESCRIPTOR,
            0 => next,
            size => match offset.checked_add(size) {
                Some(end) if (DESCRIPTOR..=next - offset).contains(&size) => end,
                _ => return invalid(format!("its section \"{}\" has an impossible size", name())),
            },
        };
        Ok(Self { file, kind, offset, end, next })
    }

    pub fn file(&self) -> &'a HostFile {
        self.file
    }

    /// Returns the offset of the data.
    pub fn start(&self) -> u64 {
        self.offset + DESCRIPTOR
    }

    /// Reads the first `length` bytes of the data. Fails if there are fewer.
    pub fn head(&self, length: u64) -> Result<Head<'a>> {
        if self.end - self.start() < length {
            return Err(self.invalid("is too short"));
        }
        Head::read(self.file, self.start(), length as usize)
    }

    /// Reads the first `length` bytes of the data, whose last four are the Adler-32 of the others.
    pub fn summed(&self, length: u64) -> Result<Head<'a>> {
        let head = self.head(length)?;
        let what = format!("section \"{}\"", excerpt(&self.kind));
        check_sum(self.file, head.bytes(), self.start(), &what)?;
        Ok(head)
    }

    /// Reads all of the data, and inflates them. Fails if there are too many.
    pub fn inflated(&self) -> Result<Vec<u8>> {
        let length = self.end - self.start();
        if length > MAX_TEXT / 2 {
            let reason = format!("has a section \"{}\" that is too long", excerpt(&self.kind));
            return Err(self.file.error(ErrorKind::Unsupported, reason).at(self.offset));
        }
        let head = self.head(length)?;
        inflate(head.bytes()).ok_or_else(|| self.invalid("cannot be decompressed"))
    }

    /// Creates an error about the section.
    pub fn invalid(&self, reason: &str) -> crate::Error {
        let reason = format!("its section \"{}\" {reason}", excerpt(&self.kind));
        self.file.corrupt(reason).at(self.offset)
    }
}

/// Inflates a whole zlib stream of at most [`MAX_TEXT`] bytes.
fn inflate(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut size = 16 * bytes.len().max(64);
    loop {
        size = size.min(MAX_TEXT as usize);
        text.resize(size, 0);
        match libdeflater::Decompressor::new().zlib_decompress(bytes, &mut text) {
            Ok(length) => {
                text.truncate(length);
                return Some(text);
            }
            Err(libdeflater::DecompressionError::InsufficientSpace) if size < MAX_TEXT as usize => {
                size *= 16;
            }
            Err(_) => return None,
        }
    }
}

/// Fails unless the last four of `bytes`, which begin at `offset`, are the Adler-32 of the others.
pub(super) fn check_sum(file: &HostFile, bytes: &[u8], offset: u64, what: &str) -> Result<()> {
    let Some((data, stored)) = bytes.split_last_chunk() else {
        return Err(file.corrupt(format!("its {what} is too short")).at(offset));
    };
    if adler32(data) == u32::from_le_bytes(*stored) {
        return Ok(());
    }
    Err(file.corrupt(format!("its {what} does not match its Adler-32")).at(offset))
}

/// Size of a descriptor in bytes.
pub(super) const DESCRIPTOR: u64 = 76;

/// Maximum size of the case data of an EWF image in bytes, which is some lines of text.
/// Limit in bytes.
const MAX_TEXT: u64 = 4 << 20;
