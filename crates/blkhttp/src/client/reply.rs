//! Answers of servers, whose bodies are read as they arrive.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::response;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::pool::Lease;
use super::within;
use crate::answer::Answer;
use crate::error::{Fault, quoted};

/// An answer of a server, whose body is read as it arrives. Its connection is closed if it is dropped before the end of the body.
pub(crate) struct Reply {
    /// The status and the headers.
    pub parts: response::Parts,
    body: Incoming,
    /// Returned to the pool at the end of the body.
    lease: Option<Lease>,
    timeout: Option<Duration>,
}

impl Reply {
    pub(super) fn new(
        answer: http::Response<Incoming>,
        lease: Lease,
        timeout: Option<Duration>,
    ) -> Self {
        let (parts, body) = answer.into_parts();
        Self { parts, body, lease: Some(lease), timeout }
    }

    /// Returns the next bytes of the body. `None` at its end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            let frame = within(self.timeout, "bytes", self.body.frame()).await?;
            match frame {
                None => {
                    if let Some(lease) = self.lease.take() {
                        lease.give_back();
                    }
                    return Ok(None);
                }
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data()
                        && !bytes.is_empty()
                    {
                        return Ok(Some(bytes));
                    }
                }
                Some(Err(error)) => return Err(broken(&error)),
            }
        }
    }

    /// Reads the body as a whole.
    pub async fn whole(mut self) -> Result<Answer, Fault> {
        let mut body = BytesMut::new();
        while let Some(bytes) = self.next().await? {
            if body.len() + bytes.len() > MAX_BODY {
                return Err(Fault::protocol("the server sent a body that is too long"));
            }
            body.extend_from_slice(&bytes);
        }
        let response::Parts { status, headers, .. } = self.parts;
        Ok(Answer { status, headers, body: body.freeze() })
    }

    /// Reads the start of the body of an error, as far as it arrives without delay, to be told or to keep the connection.
    pub async fn refused(self) -> Answer {
        let (status, headers) = (self.parts.status, self.parts.headers.clone());
        let whole = tokio::time::timeout(MAX_ERROR_TIME, self.whole()).await;
        match whole {
            Ok(Ok(answer)) => answer,
            _ => Answer { status, headers, body: Bytes::new() },
        }
    }
}

/// Returns the fault of a body that ended too early or is not valid.
fn broken(error: &hyper::Error) -> Fault {
    if error.is_parse() {
        return Fault::protocol(format!("the server sent a body that is not valid: {error}"));
    }
    Fault::temporary(format!("the connection ended within the content: {}", cause(error)))
}

/// Returns the innermost cause of an error of a connection.
pub(super) fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    if text.chars().any(char::is_control) { quoted(text.as_bytes()) } else { text }
}

/// Maximum size of the body of a small answer: an error, credentials, attributes of an object.
/// Limit in bytes.
const MAX_BODY: usize = 1 << 20;

/// Maximum time for the body of an error.
/// Limit in time.
const MAX_ERROR_TIME: Duration = Duration::from_secs(5);
