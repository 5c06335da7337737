//! Where an object is, how it is asked for, and what pins its version.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, HeaderValue, IF_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, LOCATION, RANGE, USER_AGENT,
};
use http::{Method, Request, StatusCode};

use crate::answer::Answer;
use crate::client::{Client, Reply, Terms};
use crate::error::{Cause, ErrorKind, Fault, quoted};
use crate::retry::Backoff;
use crate::sign::{Refusal, Target};
use crate::url::Origin;
use crate::version::{Content, Version, changed};
use crate::{Error, HttpOptions, Result, Statistics, Url};

/// An object on a server.
pub(crate) struct Source {
    /// The URL that the user knows, for messages.
    pub shown: Url,
    pub client: Client,
    pub timeout: Option<Duration>,
    pub retries: u32,
    target: Target,
    /// The URL after redirects. `None` means the URL of the target.
    location: Mutex<Option<Url>>,
    pinned: OnceLock<Version>,
    renewing: tokio::sync::Mutex<()>,
    changed: Mutex<Option<Error>>,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    requests: AtomicU64,
    retries: AtomicU64,
    bytes: AtomicU64,
    connections: AtomicU64,
    busy: AtomicU64,
}

/// Bytes of an object that begin to arrive.
pub(crate) struct Arriving {
    pub reply: Reply,
    pub version: Version,
    pub content: Content,
}

impl Source {
    pub fn new(shown: Url, target: Target, client: Client, options: &HttpOptions) -> Self {
        Self {
            shown,
            client,
            timeout: options.timeout,
            retries: options.retries,
            target,
            location: Mutex::new(None),
            pinned: OnceLock::new(),
            renewing: tokio::sync::Mutex::new(()),
            changed: Mutex::new(None),
            counters: Counters::default(),
        }
    }

    /// Returns the URL that led to the object, after redirects. It stays the S3 URL.
    pub fn url(&self) -> Url {
        let location = lock(&self.location).clone();
        location.unwrap_or_else(|| self.shown.clone())
    }

    /// Pins the version that was found first.
    pub fn pin(&self, version: Version) {
        let _ = self.pinned.set(version);
    }

    /// Returns the version that was pinned.
    pub fn pinned(&self) -> Option<&Version> {
        self.pinned.get()
    }

    /// Returns the error of all reads if the object changed.
    pub fn changed(&self) -> Option<Error> {
        lock(&self.changed).clone()
    }

    /// Returns the error after the last attempt, and remembers a change.
    pub fn fail(&self, fault: Fault) -> Error {
        let error = fault.into_error(&self.shown);
        if error.kind() != ErrorKind::Changed {
            return error;
        }
        lock(&self.changed).get_or_insert(error).clone()
    }

    /// Counts bytes of content.
    pub fn count_bytes(&self, bytes: usize) {
        self.counters.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts a request that is sent again.
    pub fn count_retry(&self, cause: Cause) {
        self.counters.retries.fetch_add(1, Ordering::Relaxed);
        if cause == Cause::Busy {
            self.counters.busy.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how often the server was busy since the last call.
    pub fn take_busy(&self) -> u64 {
        self.counters.busy.swap(0, Ordering::Relaxed)
    }

    pub fn statistics(&self) -> Statistics {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            requests: count(&self.counters.requests),
            retries: count(&self.counters.retries),
            bytes: count(&self.counters.bytes),
            connections: count(&self.counters.connections),
        }
    }

    /// Asks once for a range, which is not empty, and returns the answer when its headers are there and are valid.
    pub async fn ask(&self, range: &Range<u64>) -> Result<Arriving, Fault> {
        if let Some(error) = self.changed() {
            return Err(Fault::Final(error.kind(), error.reason().to_owned()));
        }
        let mut reply = self.find(range).await?;
        if self.shown.is_s3() {
            // S3 sends the bytes that were stored, whatever their uploader said of them.
            reply.parts.headers.remove(CONTENT_ENCODING);
        }
        let (version, content) = Version::new(reply.parts.status, &reply.parts.headers)?;
        let Some(pinned) = self.pinned() else {
            return Ok(Arriving { reply, version, content });
        };
        pinned.check(&version)?;
        match &content {
            // A server may send less than was asked for, and is asked for the rest.
            Content::Range(sent) if sent.start == range.start && sent.end <= range.end => {}
            Content::Range(sent) => {
                let (start, end) = (sent.start, sent.end);
                return Err(Fault::protocol(format!(
                    "the server sent the bytes {start} to {end} instead of {} to {}",
                    range.start, range.end
                )));
            }
            Content::Whole => {
                return Err(Fault::protocol(
                    "the server has ranges no longer, or not of these bytes",
                ));
            }
            Content::Outside => {
                return Err(Fault::protocol(
                    "the server refuses a range within the length it stated",
                ));
            }
        }
        Ok(Arriving { reply, version, content })
    }

    /// Sends requests until an answer has content, from the pinned location on, and if that no longer exists, from the start on.
    async fn find(&self, range: &Range<u64>) -> Result<Reply, Fault> {
        let pinned = lock(&self.location).clone();
        if let Some(url) = pinned {
            match self.walk(url, range).await? {
                Walk::Found(reply) => return Ok(*reply),
                // Signed URLs expire.
                Walk::Refused(answer, _) if matches!(answer.status.as_u16(), 403 | 404 | 410) => {}
                Walk::Refused(answer, _) => return Err(refusal(&answer)),
            }
        }
        match self.walk(self.target.url.clone(), range).await? {
            Walk::Found(reply) => Ok(*reply),
            Walk::Refused(answer, is_origin) => Err(self.refusal_of(&answer, is_origin).await),
        }
    }

    /// Sends requests to a URL and those that it redirects to.
    async fn walk(&self, mut url: Url, range: &Range<u64>) -> Result<Walk, Fault> {
        let mut seen = vec![url.clone()];
        loop {
            let reply = self.send(&url, range).await?;
            let status = reply.parts.status;
            match status.as_u16() {
                200 | 206 | 416 => {
                    let is_target = url == self.target.url;
                    *lock(&self.location) = (!is_target).then_some(url);
                    return Ok(Walk::Found(Box::new(reply)));
                }
                301 | 302 | 303 | 307 | 308
                    if reply.parts.headers.contains_key(LOCATION)
                        && !self.is_for_signer(&url, &reply) =>
                {
                    let next = redirected(&url, &reply)?;
                    if seen.contains(&next) {
                        let reason = "the server redirects in a circle";
                        return Err(Fault::protocol(reason));
                    }
                    if seen.len() > MAX_REDIRECTS {
                        let reason =
                            format!("the server redirects more than {MAX_REDIRECTS} times");
                        return Err(Fault::protocol(reason));
                    }
                    reply.refused().await;
                    seen.push(next.clone());
                    url = next;
                }
                _ => {
                    let is_origin = url.origin() == self.target.url.origin();
                    return Ok(Walk::Refused(reply.refused().await, is_origin));
                }
            }
        }
    }

    /// Returns whether a redirect is to be signed for another region, which the signer has to know.
    fn is_for_signer(&self, url: &Url, reply: &Reply) -> bool {
        let is_origin = url.origin() == self.target.url.origin();
        is_origin
            && self.target.signer.is_some()
            && reply.parts.headers.contains_key("x-amz-bucket-region")
    }

    /// Sends one request, with credentials if it goes to where they are for.
    async fn send(&self, url: &Url, range: &Range<u64>) -> Result<Reply, Fault> {
        let origin = url.origin();
        let mut request = self.request(url, &origin, range)?;
        if let Some(signer) =
            self.target.signer.as_ref().filter(|_| origin == self.target.url.origin())
        {
            if signer.is_stale() {
                self.renew().await?;
            }
            let (mut parts, body) = request.into_parts();
            signer.sign(&mut parts).map_err(|error| final_fault(&error))?;
            request = Request::from_parts(parts, body);
        }
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        let (reply, is_new) = self.client.exchange(&origin, request, self.timeout, true).await?;
        if is_new {
            self.counters.connections.fetch_add(1, Ordering::Relaxed);
        }
        Ok(reply)
    }

    /// Returns the request for a range, without what a signer adds.
    fn request(
        &self,
        url: &Url,
        origin: &Origin,
        range: &Range<u64>,
    ) -> Result<Request<Bytes>, Fault> {
        let scheme = if origin.is_encrypted { "https" } else { "http" };
        let uri = format!("{scheme}://{}:{}{}", origin.host, origin.port, url.target());
        let mut request = Request::get(uri)
            .body(Bytes::new())
            .map_err(|e| Fault::Final(ErrorKind::Url, format!("is no valid URL: {e}")))?;
        let last = range.end.saturating_sub(1);
        let bytes = format!("bytes={}-{last}", range.start);
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if let Ok(bytes) = HeaderValue::from_str(&bytes) {
            headers.insert(RANGE, bytes);
        }
        if let Some(version) = self.pinned() {
            version.add_conditions(headers);
        }
        let own =
            || self.target.url.authorization().filter(|_| *origin == self.target.url.origin());
        if let Some(Ok(mut value)) = url.authorization().or_else(own).map(HeaderValue::try_from) {
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(request)
    }

    /// Sends a small request about the object, with additional headers, and blocks. A query that is not empty replaces
    /// the query of the URL.
    pub fn ask_about(
        &self,
        method: Method,
        query: &str,
        more: &[(&'static str, &str)],
    ) -> Result<Answer> {
        let pinned = lock(&self.location).clone();
        let url = pinned.unwrap_or_else(|| self.target.url.clone());
        let origin = url.origin();
        let fail = |fault: Fault| fault.into_error(&self.shown);
        let invalid = || fail(Fault::protocol("the request has no valid form"));
        let mut request = self.request(&url, &origin, &(0..1)).map_err(fail)?;
        *request.method_mut() = method;
        for name in [RANGE, IF_RANGE, IF_MATCH, IF_UNMODIFIED_SINCE] {
            request.headers_mut().remove(name);
        }
        for &(name, value) in more {
            request
                .headers_mut()
                .insert(name, HeaderValue::from_str(value).map_err(|_| invalid())?);
        }
        if !query.is_empty() {
            let uri = request.uri().to_string();
            let base = uri.split_once('?').map_or(&*uri, |(base, _)| base);
            *request.uri_mut() = format!("{base}?{query}").parse().map_err(|_| invalid())?;
        }
        let signer = self.target.signer.as_deref().filter(|_| origin == self.target.url.origin());
        let terms = Terms { timeout: self.timeout, retries: self.retries, proxy: true };
        self.client.request(&self.shown, &request, signer, terms)
    }

    /// Gets new credentials, unless another request has got them meanwhile.
    async fn renew(&self) -> Result<(), Fault> {
        let _one = self.renewing.lock().await;
        let Some(signer) = self.target.signer.clone().filter(|signer| signer.is_stale()) else {
            return Ok(());
        };
        let renewed = tokio::task::spawn_blocking(move || signer.renew()).await;
        let renewed = renewed.map_err(|_| Fault::temporary("the renewal of credentials ended"))?;
        renewed.map_err(|error| final_fault(&error))
    }

    /// Returns the fault that a refused request means.
    async fn refusal_of(&self, answer: &Answer, is_origin: bool) -> Fault {
        let signer = self.target.signer.as_ref().filter(|_| is_origin);
        match signer.map_or(Refusal::ByStatus, |signer| signer.refused(answer)) {
            Refusal::ByStatus => refusal(answer),
            Refusal::Because(kind, reason) => Fault::Final(kind, reason),
            Refusal::Renew => match self.renew().await {
                Ok(()) => Fault::temporary("the credentials expired"),
                Err(fault) => fault,
            },
            Refusal::Busy => Fault::Temporary {
                reason: "the server is busy".to_owned(),
                wait: Backoff::wait_of(&answer.headers),
                cause: Cause::Busy,
            },
        }
    }
}

/// Where a walk through redirects ended.
enum Walk {
    /// At an answer with content.
    Found(Box<Reply>),
    /// At another answer, and whether it comes from the origin of the target.
    Refused(Answer, bool),
}

/// Returns the URL that an answer redirects to.
fn redirected(url: &Url, reply: &Reply) -> Result<Url, Fault> {
    let value = reply.parts.headers.get(LOCATION).map(HeaderValue::as_bytes).unwrap_or_default();
    let next = std::str::from_utf8(value).ok().and_then(|location| url.follow(location).ok());
    let Some(next) = next else {
        return Err(Fault::protocol(
            "the server redirects to what is no valid URL of http or https",
        ));
    };
    if url.is_encrypted() && !next.is_encrypted() {
        let reason = format!("the server redirects from https to http, to {}", next.origin());
        return Err(Fault::Final(ErrorKind::Denied, reason));
    }
    Ok(next)
}

/// Returns the fault that a status means.
fn refusal(answer: &Answer) -> Fault {
    let status = answer.status;
    let kind = match status.as_u16() {
        401 => {
            let reason = "the server needs a name and a password, or refuses them (401)";
            return Fault::Final(ErrorKind::Denied, reason.to_owned());
        }
        403 => {
            let reason = "the server does not allow reading it (403)";
            return Fault::Final(ErrorKind::Denied, reason.to_owned());
        }
        404 | 410 => {
            return Fault::Final(
                ErrorKind::NotFound,
                format!("does not exist ({})", status.as_u16()),
            );
        }
        412 => return changed("the server says that it has another version (412)"),
        407 => ErrorKind::Denied,
        _ if Backoff::is_temporary(status) => {
            let reason = format!("the server answered {}", named(status));
            let wait = Backoff::wait_of(&answer.headers);
            let is_busy = matches!(status.as_u16(), 429 | 503);
            let cause = if is_busy { Cause::Busy } else { Cause::Broken };
            return Fault::Temporary { reason, wait, cause };
        }
        400..500 => ErrorKind::Unsupported,
        _ => ErrorKind::Protocol,
    };
    Fault::Final(kind, format!("the server answered {}", named(status)))
}

/// Returns a status with its usual meaning.
fn named(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => quoted(status.as_str().as_bytes()),
    }
}

fn final_fault(error: &Error) -> Fault {
    Fault::Final(error.kind(), error.reason().to_owned())
}

/// Locks what no panic can leave half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the client calls itself.
const AGENT: &str = concat!("blkhttp/", env!("CARGO_PKG_VERSION"));

/// Maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 10;
