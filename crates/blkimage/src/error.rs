//! The one error type: a kind for programs, a name and a reason for people.
//!
//! Names and everything else that comes out of an image is escaped when it is shown, so that a
//! hostile image cannot write control sequences to a terminal.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A result whose error is [`Error`] unless told.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an image cannot be opened or read.
#[derive(Debug)]
pub struct Error(Box<Inner>);

/// What went wrong, as far as a program cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file cannot be opened; the source is the system's error.
    Open,
    /// A server cannot be reached, has no such export, or is not understood.
    Connect,
    /// The file cannot be read; the source is the system's error.
    Io,
    /// A directory stands where an image is expected.
    Directory,
    /// A pipe or FIFO: it has neither a size nor offsets to read at.
    Pipe,
    /// A socket, a character device or something else that holds no image.
    FileType,
    /// The image is not of the format that it is said to be, or of one that cannot be read from where
    /// it is.
    Format,
    /// The image breaks the rules of its format.
    Corrupt,
    /// The image keeps the rules and uses something that is not read here, such as encryption.
    Unsupported,
    /// The image names another file that may not be opened, or names it in a way that is never
    /// followed.
    Reference,
    /// The program that reads the format is missing, or it failed.
    Server,
    /// There is no such snapshot, or the format has none.
    Snapshot,
    /// Another process may write to the image.
    InUse,
    /// The image changed since it was opened.
    Changed,
    /// The file ended before the size it had when it was opened.
    Truncated,
    /// The file system calls a hole what is not zero.
    Holes,
    /// There is more content than files that store so little should have: a limit that can be raised.
    Size,
    /// The caller asked for bytes that are not there.
    Argument,
}

impl Error {
    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file it is about, as it was named by the caller or by an image.
    pub fn name(&self) -> &Path {
        &self.0.name
    }

    /// The offset in that file, where there is one.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// What the message says after the name.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// The system's error, where there is one.
    pub fn io_error(&self) -> Option<&io::Error> {
        self.0.source.as_ref()
    }

    /// An error about the file `name`. For sources of other crates too.
    pub fn new(kind: ErrorKind, name: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        let (name, reason) = (name.into(), reason.into());
        Self(Box::new(Inner { kind, name, reason, offset: None, source: None }))
    }

    /// Adds the offset in the file.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// Adds the system's error.
    #[must_use]
    pub fn because(mut self, source: impl Into<io::Error>) -> Self {
        self.0.source = Some(source.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { name, reason, offset, .. } = &*self.0;
        write!(f, "{}: {reason}", escaped(name.as_os_str().as_encoded_bytes()))?;
        match offset {
            Some(offset) => write!(f, " (offset {offset})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}

/// Bytes from outside made fit for one line of a terminal: control characters, characters that
/// change the direction of text and bytes that are not UTF-8 become escapes.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() || is_format_control(c) {
                text.extend(c.escape_default());
            } else {
                text.push(c);
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Like [`escaped`] and no longer than a message should be.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    match bytes.get(..MAX_EXCERPT) {
        Some(head) if bytes.len() > MAX_EXCERPT => escaped(head) + "...",
        _ => escaped(bytes),
    }
}

fn is_format_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    name: PathBuf,
    reason: String,
    offset: Option<u64>,
    source: Option<io::Error>,
}

/// The longest piece of an image that a message repeats: a backing file name fits, a screenful does
/// not.
const MAX_EXCERPT: usize = 1023;

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn one_line_without_its_source() {
        let error = Error::new(ErrorKind::Io, "disk.img", "cannot be read")
            .at(512)
            .because(io::Error::other("broken"));
        assert_eq!(error.to_string(), "disk.img: cannot be read (offset 512)");
        assert_eq!(error.source().unwrap().to_string(), "broken");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escaped(b"a\n\x1b[2J\xff\\z"), "a\\n\\u{1b}[2J\\xff\\z");
        assert_eq!(escaped("\u{202e}gpj".as_bytes()), "\\u{202e}gpj");
        assert_eq!(excerpt(&[b'x'; 2000]).len(), MAX_EXCERPT + 3);
    }
}
