//! Describes for users the object on a server that holds a file.

/// An object on an HTTP or S3 server, and what reading it took so far.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedObject {
    /// The URL that led to it, after redirects, without secrets.
    pub url: String,
    /// Describes what tells that the object did not change, such as its `ETag`.
    pub validator: String,
    /// Number of requests that were sent, retries included.
    pub requests: u64,
    /// Number of requests that were sent again.
    pub retries: u64,
    /// Bytes of content that were received.
    pub bytes: u64,
}
