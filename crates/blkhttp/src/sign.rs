//! The hook with which requests are authorised.

use std::sync::Arc;

use http::request::Parts;

use crate::answer::Answer;
use crate::{ErrorKind, Result, Url};

/// Authorises requests to the host of the URL that an object was opened by. Requests that a redirect leads to another
/// host, port or scheme are never passed to it.
pub(crate) trait Signer: Send + Sync {
    /// Adds what authorises a request, which has an absolute URI and every other header but `Host`, and has no body.
    ///
    /// Called on the thread of the client, for every request and again for each retry, so it must not block.
    ///
    /// # Errors
    ///
    /// Fails if there are no credentials. The request is not sent then, and not tried again.
    fn sign(&self, request: &mut Parts) -> Result<()>;

    /// Returns whether [`renew`](Self::renew) has to be called before a request is signed. Must not block.
    fn is_stale(&self) -> bool {
        false
    }

    /// Gets new credentials. Called on a thread that may block, by one request at a time, and may call
    /// [`Client::request`](crate::client::Client::request).
    ///
    /// # Errors
    ///
    /// Fails if there are no new ones, which ends the request that needs them.
    fn renew(&self) -> Result<()> {
        Ok(())
    }

    /// Says what it means that a request was refused, with a status of 300 to 499 that no rule of HTTP explains.
    fn refused(&self, _answer: &Answer) -> Refusal {
        Refusal::ByStatus
    }
}

/// The meaning of an answer that refuses a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The status says it all.
    ByStatus,
    /// The request fails for this reason, which says what to do.
    Because(ErrorKind, String),
    /// The credentials expired: they are renewed if they are stale from now on, and the request is sent again.
    Renew,
    /// The server is busy: the request is sent again, as after a 503.
    Busy,
}

/// Where an object is, and which credentials may read it: what the URL of a store of objects is resolved to.
#[derive(Clone)]
pub(crate) struct Target {
    /// A URL of http or https.
    pub url: Url,
    /// Authorises the requests, if they have to be.
    pub signer: Option<Arc<dyn Signer>>,
}
