//! The error type of this crate.

use crate::Url;

/// A result whose error is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an object cannot be opened or read.
///
/// Errors of reads are [`std::io::Error`]s that contain one.
#[derive(Debug, thiserror::Error)]
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

    /// Returns the category of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the URL of the object, without secrets.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the message without the URL.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
