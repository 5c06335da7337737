//! Small answers, read as a whole.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// An answer of a server, whose body is at most [`MAX_BODY`] bytes.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The status.
    pub status: StatusCode,
    /// All headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// Maximum size of the body of a small answer: an error, credentials, attributes of an object.
/// Limit in bytes.
pub(crate) const MAX_BODY: usize = 1 << 20;
