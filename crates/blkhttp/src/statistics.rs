//! What reading takes.

/// What reading an object took so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Requests that were sent, retries included.
    pub requests: u64,
    /// Requests that were sent again.
    pub retries: u64,
    /// Bytes of content that were received.
    pub bytes: u64,
    /// Connections that were opened.
    pub connections: u64,
}
