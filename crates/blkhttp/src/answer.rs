//! A whole answer of a server.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// An answer of a server, whose body is at most 1 MiB.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The status.
    pub status: StatusCode,
    /// All headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}
