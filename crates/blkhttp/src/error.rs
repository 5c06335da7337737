//! The error type of this crate.

use std::io;

use crate::Url;

/// A result whose error is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an object cannot be opened or read.
///
/// Errors of reads are [`std::io::Error`]s that contain one.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Error {
    kind: ErrorKind,
    url: String,
    reason: String,
}

/// The category of an [`Error`], for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The URL is not valid, or not one that is read.
    Url,
    /// The server cannot be reached, or its certificate is not trusted.
    Connect,
    /// The server has no such object.
    NotFound,
    /// The server does not allow reading the object, or the credentials are missing or wrong.
    Denied,
    /// The object changed since it was opened.
    Changed,
    /// The server was silent for too long, or failed after all retries.
    Unavailable,
    /// An answer of the server is not valid.
    Protocol,
    /// The server cannot do what was asked for.
    Unsupported,
}

impl Error {
    /// Creates an error about an object.
    pub(crate) fn new(kind: ErrorKind, url: &Url, reason: impl Into<String>) -> Self {
        Self { kind, url: url.to_string(), reason: reason.into() }
    }

    /// Creates an error about a URL that is not valid, of which a part may still be a secret.
    pub(crate) fn invalid_url(reason: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Url, url: String::new(), reason: reason.into() }
    }

    /// Returns the category of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the URL of the object, without secrets. It is empty if the URL is not valid.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the message without the URL.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind {
            ErrorKind::Url => io::ErrorKind::InvalidInput,
            ErrorKind::NotFound => io::ErrorKind::NotFound,
            ErrorKind::Denied => io::ErrorKind::PermissionDenied,
            ErrorKind::Protocol => io::ErrorKind::InvalidData,
            ErrorKind::Unsupported => io::ErrorKind::Unsupported,
            ErrorKind::Connect | ErrorKind::Changed | ErrorKind::Unavailable => {
                io::ErrorKind::Other
            }
        };
        Self::new(kind, error)
    }
}

/// Why one attempt of a request failed.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The next attempt may succeed.
    Temporary {
        /// What happened.
        reason: String,
        /// The number of seconds that the server asks to wait.
        wait: Option<u64>,
        /// What kind of fault it is.
        cause: Cause,
    },
    /// No attempt will succeed.
    Final(ErrorKind, String),
}

/// The kind of a fault that may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// There was no connection yet.
    Unreachable,
    /// The connection or the server failed.
    Broken,
    /// The server says that it has too much to do.
    Busy,
}

impl Fault {
    /// Creates the fault of a connection that failed, or of a server that did.
    pub fn temporary(reason: impl Into<String>) -> Self {
        Self::Temporary { reason: reason.into(), wait: None, cause: Cause::Broken }
    }

    /// Creates the fault of a server to which there is no connection yet.
    pub fn unreachable(reason: impl Into<String>) -> Self {
        Self::Temporary { reason: reason.into(), wait: None, cause: Cause::Unreachable }
    }

    /// Creates the fault of an answer that is not valid.
    pub fn protocol(reason: impl Into<String>) -> Self {
        Self::Final(ErrorKind::Protocol, reason.into())
    }

    /// Returns the error after the last attempt.
    pub fn into_error(self, url: &Url) -> Error {
        match self {
            Self::Temporary { reason, cause: Cause::Unreachable, .. } => {
                Error::new(ErrorKind::Connect, url, reason)
            }
            Self::Temporary { reason, .. } => Error::new(ErrorKind::Unavailable, url, reason),
            Self::Final(kind, reason) => Error::new(kind, url, reason),
        }
    }
}

/// Returns text of a server for a message: escaped, and cut if it is long.
pub(crate) fn quoted(text: &[u8]) -> String {
    let shown = &text[..text.len().min(MAX_QUOTED)];
    let more = if shown.len() < text.len() { "..." } else { "" };
    format!("\"{}{more}\"", String::from_utf8_lossy(shown).escape_debug())
}

/// Maximum length of a text of a server in a message.
/// Limit in bytes.
const MAX_QUOTED: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_servers_are_escaped_and_cut() {
        assert_eq!(quoted(b"a\x1b[1m\n\xff"), "\"a\\u{1b}[1m\\n\u{fffd}\"");
        assert_eq!(quoted(&[b'a'; 500]), format!("\"{}...\"", "a".repeat(200)));
    }
}
