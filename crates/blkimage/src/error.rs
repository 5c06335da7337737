//! The error type of this crate: a kind for programs, a name and a reason for users.
//!
//! Names and all other text taken from an image are escaped on display, so that a hostile image cannot
//! send control sequences to a terminal.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::hint::Hint;

/// A result whose error is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an image cannot be opened or read.
#[derive(Debug)]
pub struct Error(Box<Inner>);

/// The category of an [`Error`], for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file cannot be opened. The source is the system's error.
    Open,
    /// A server cannot be reached, does not have the export, or sends an invalid reply.
    Connect,
    /// The file cannot be read. The source is the system's error.
    Io,
    /// The path leads to a directory.
    Directory,
    /// The path leads to a pipe or FIFO, which has no size and no offsets.
    Pipe,
    /// The path leads to a socket, a character device or another file that cannot hold an image.
    FileType,
    /// The image does not have the format that was given or recorded, or its format cannot
    /// be read from this source.
    Format,
    /// The image violates the rules of its format.
    Corrupt,
    /// The image is valid but uses an unsupported feature, such as encryption.
    Unsupported,
    /// The image refers to a file that may not be opened, or in a way that is never followed.
    Reference,
    /// The program that reads the format is missing or failed.
    Server,
    /// The image has no such snapshot, or its format has no snapshots.
    Snapshot,
    /// Another process may be writing to the image.
    InUse,
    /// The image changed since it was opened.
    Changed,
    /// The file ended before the size it had when it was opened.
    Truncated,
    /// The file system reports a hole whose content is not zero.
    Holes,
    /// The content is too large for the size of its files. The limit can be raised.
    Size,
    /// The caller requested a range outside of the image.
    Argument,
}

impl Error {
    /// Returns the category of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the name of the file with the error, as given by the caller or an image.
    pub fn name(&self) -> &Path {
        &self.0.name
    }

    /// Returns the offset in that file, if any.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the message without the name.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// Returns the system's error, if any.
    pub fn io_error(&self) -> Option<&io::Error> {
        self.0.source.as_ref()
    }

    /// Returns the option for opening the image that may help, if any.
    pub fn hint(&self) -> Option<Hint> {
        self.0.hint.or_else(|| self.io_error().and_then(Hint::of_io))
    }

    /// Returns whether the error is about the bytes that were asked for, so that others may be readable: they are damaged
    /// or missing, or the medium cannot read them. An error of a file or a server as a whole is not, such as a lost
    /// connection, a device that is gone, or a file that changed.
    pub fn is_of_bytes(&self) -> bool {
        match self.kind() {
            // Of a file as a whole.
            _ if self.0.is_mismatch => false,
            ErrorKind::Corrupt | ErrorKind::Truncated => true,
            ErrorKind::Io => self.io_error().is_some_and(|error| {
                let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<RefusedRead>());
                inner.is_some() || blksys::is_of_bytes(error)
            }),
            _ => false,
        }
    }

    /// Returns whether a file does not match a digest that was stated with it, as of a blob in an OCI image.
    pub fn is_digest_mismatch(&self) -> bool {
        self.0.is_mismatch
    }

    /// Makes this the error of a file that does not match its digest.
    pub(crate) fn of_mismatch(mut self) -> Self {
        self.0.is_mismatch = true;
        self
    }

    /// Creates an error about the file `name`. Other crates that implement sources use it too.
    pub fn new(kind: ErrorKind, name: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        let (name, reason) = (name.into(), reason.into());
        Self(Box::new(Inner {
            kind,
            name,
            reason,
            offset: None,
            source: None,
            hint: None,
            is_mismatch: false,
        }))
    }

    /// Adds the offset in the file.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// Adds the option that may help.
    #[must_use]
    pub fn with_hint(mut self, hint: Hint) -> Self {
        self.0.hint = Some(hint);
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

/// The reason why a server cannot read the bytes that were asked for, although it can read others.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
#[cfg_attr(not(feature = "nbd"), allow(dead_code))]
pub(crate) struct RefusedRead(pub String);

/// Escapes bytes from an untrusted source for one line of a terminal. Control characters, characters
/// that change the direction of text and bytes that are not UTF-8 become escapes.
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

/// Escapes bytes like [`escaped`], limited to the length of a message.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    match bytes.get(..MAX_EXCERPT) {
        Some(head) if bytes.len() > MAX_EXCERPT => escaped(head) + "...",
        _ => escaped(bytes),
    }
}

/// Returns the reason why a text is no XML. The message of the parser has names from the text.
pub(crate) fn not_xml(error: &quick_xml::Error) -> String {
    format!("is no XML: {}", excerpt(error.to_string().as_bytes()))
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
    hint: Option<Hint>,
    /// Whether a file does not match a digest that was stated with it.
    is_mismatch: bool,
}

/// Maximum number of bytes of an image that a message repeats. A backing file name fits.
/// Limit in bytes.
const MAX_EXCERPT: usize = 1023;

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn display_omits_the_source() {
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
