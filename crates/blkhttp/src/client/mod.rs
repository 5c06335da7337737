//! The client: one thread for all requests of a process.

mod answer;

use std::time::Duration;

use bytes::Bytes;
use http::Request;

pub(crate) use answer::{Answer, MAX_BODY};

use crate::{Error, ErrorKind, HttpOptions, Result, Signer, Url};

/// A client with its certificates, which is cheap to clone.
#[derive(Clone)]
pub(crate) struct Client {}

/// How a small request is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Maximum time of an attempt, from connecting to the end of the body. `None` waits forever.
    pub timeout: Option<Duration>,
    /// Maximum number of attempts after the first one failed because the server is unreachable or busy.
    pub retries: u32,
    /// Whether a proxy of the environment is used.
    pub proxy: bool,
}

impl Client {
    /// Creates a client. The first one of a process starts the thread.
    ///
    /// # Errors
    ///
    /// Fails if the certificate authorities cannot be read or the thread cannot start.
    pub fn new(_options: &HttpOptions) -> Result<Self> {
        Ok(Self {})
    }

    /// Sends a small request, blocks, and returns the answer, whatever its status is. Redirects are not followed.
    ///
    /// Must not be called on the thread of the client.
    ///
    /// # Errors
    ///
    /// Fails if the URI is not absolute, the server cannot be reached, or the body is longer than [`MAX_BODY`].
    pub fn request(
        &self,
        _request: Request<Bytes>,
        _signer: Option<&dyn Signer>,
        _terms: Terms,
    ) -> Result<Answer> {
        let url: Url = "http://localhost/".parse()?;
        Err(Error::new(ErrorKind::Unsupported, &url, "is not sent yet"))
    }
}
