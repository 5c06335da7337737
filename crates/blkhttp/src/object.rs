//! One object, opened.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;
use std::{fmt, io};

use http::{Method, StatusCode};

use crate::client::Client;
use crate::error::Fault;
use crate::ranged::{HEAD, Ranged};
use crate::rate::Rate;
use crate::retry::Backoff;
use crate::s3;
use crate::sign::Target;
use crate::source::Source;
use crate::streamed::Streamed;
use crate::transfer::start;
use crate::version::{Content, Version};
use crate::{Error, ErrorKind, HttpOptions, Result, Statistics, StoredChecksum, Url, Validator};

/// An object on a server, opened.
///
/// Several threads may read it at once.
pub struct Object {
    source: Arc<Source>,
    size: Option<u64>,
    way: Way,
}

/// How an object is read.
enum Way {
    Ranged(Ranged),
    Streamed(Streamed),
}

impl Object {
    /// Opens an object with one request, which gets its first bytes.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached, has no such object, does not allow reading it, or sends an invalid answer.
    pub fn open(url: &Url, options: &HttpOptions) -> Result<Self> {
        if url.is_s3() {
            return s3::open(url, options);
        }
        let client = Client::new(url, options)?;
        Self::open_target(url, Target { url: url.clone(), signer: None }, client, options)
    }

    /// Opens an object that may need signed requests. Messages show `shown`.
    pub(crate) fn open_target(
        shown: &Url,
        target: Target,
        client: Client,
        options: &HttpOptions,
    ) -> Result<Self> {
        let source = Arc::new(Source::new(shown.clone(), target, client, options));
        let (opening, asked) = (source.clone(), 0..HEAD);
        let arriving = block_on(&source, async move {
            let mut backoff = Backoff::new(opening.retries);
            let mut rate = Rate::new(opening.timeout, Instant::now());
            start(&opening, &asked, &mut backoff, &mut rate).await
        })?;
        source.pin(arriving.version.clone());
        let mut size = arriving.version.length;
        let way = match (&arriving.content, size) {
            (Content::Range(sent), Some(length)) if sent.start == 0 && sent.end <= HEAD => {
                Way::Ranged(Ranged::new(source.clone(), length, Some(arriving)))
            }
            (Content::Range(_), None) => {
                let reason = "the server has ranges, but does not state the length";
                return Err(source.fail(Fault::protocol(reason)));
            }
            (Content::Range(_), _) => {
                let reason = "the server sent another range than the first bytes";
                return Err(source.fail(Fault::protocol(reason)));
            }
            (Content::Outside, Some(0)) => Way::Ranged(Ranged::new(source.clone(), 0, None)),
            // Servers of S3 do not state the length then.
            (Content::Outside, None) if is_empty(&source)? => {
                size = Some(0);
                Way::Ranged(Ranged::new(source.clone(), 0, None))
            }
            (Content::Outside, _) => {
                return Err(
                    source.fail(Fault::protocol("the server refuses the first bytes (416)"))
                );
            }
            (Content::Whole, _) => Way::Streamed(Streamed::new(source.clone(), arriving.reply)),
        };
        Ok(Self { source, size, way })
    }

    /// Returns the URL that led to the object, after redirects.
    pub fn url(&self) -> Url {
        self.source.url()
    }

    /// Returns the size in bytes. `None` if the server does not state it, which it may omit only without ranges.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Returns whether the server has ranges. Without, bytes are read from the start to the end, once.
    pub fn has_ranges(&self) -> bool {
        matches!(self.way, Way::Ranged(_))
    }

    /// Returns what tells that the object did not change.
    pub fn validator(&self) -> Validator {
        self.source.pinned().map_or(Validator::Length, Version::validator)
    }

    /// Returns the ETag of the object as the server wrote it, with its quotes, also if it is weak.
    pub fn etag(&self) -> Option<String> {
        self.source.pinned()?.etag()
    }

    /// Reads at most `buf.len()` bytes from `offset` on. Returns 0 at the end.
    ///
    /// Without ranges, `offset` belongs to the bytes that were not read yet, or is within the first MiB.
    ///
    /// # Errors
    ///
    /// Fails with an error that contains an [`Error`].
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if let Some(error) = self.source.changed() {
            return Err(error.into());
        }
        match &self.way {
            Way::Ranged(ranged) => ranged.read_at(buf, offset),
            Way::Streamed(streamed) => streamed.read_at(buf, offset),
        }
    }

    /// Announces that these bytes will be read once, soon, and in about the order of the calls. Never blocks.
    ///
    /// Each announced byte is handed out once. Another read of it may need another request.
    pub fn will_need(&self, offset: u64, length: u64) {
        if let Way::Ranged(ranged) = &self.way {
            ranged.will_need(offset..offset.saturating_add(length));
        }
    }

    /// Returns the number of bytes that should be announced ahead of reads. May change while bytes are read.
    ///
    /// It is also the maximum of what is kept in memory of announced bytes, and 0 without ranges.
    pub fn read_ahead(&self) -> u64 {
        match &self.way {
            Way::Ranged(ranged) => ranged.read_ahead(),
            Way::Streamed(_) => 0,
        }
    }

    /// Returns the reason if the object changed since it was opened, as far as the server said so.
    pub fn changed(&self) -> Option<String> {
        Some(self.source.changed()?.reason().to_owned())
    }

    /// Asks the server for the checksums that it stores with the object.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached, refuses to answer, or has another object by now.
    pub fn checksums(&self) -> Result<Vec<StoredChecksum>> {
        let Some(size) = self.size.filter(|_| self.has_ranges()) else {
            return Ok(Vec::new());
        };
        let tag = self.etag();
        let shown = &self.source.shown;
        let asked = s3::Asked { is_s3: shown.is_s3(), size, tag: tag.as_deref() };
        let ask = |method, query: &str, headers: &[(&'static str, &str)]| {
            self.source.ask_about(method, query, headers)
        };
        asked.checksums(&ask)?.map_err(|problem| problem.of(shown))
    }

    /// Returns what reading took so far.
    pub fn statistics(&self) -> Statistics {
        self.source.statistics()
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").field("url", &self.url()).field("size", &self.size).finish()
    }
}

/// Returns whether an object without any range is empty.
fn is_empty(source: &Source) -> Result<bool> {
    let answer = source.ask_about(Method::GET, "", &[])?;
    Ok(answer.status == StatusCode::OK && answer.body.is_empty())
}

/// Runs a future on the thread of the client, and waits for it.
fn block_on<T: Send + 'static>(
    source: &Source,
    future: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    source.client.handle().spawn(async move {
        let _ = sender.send(future.await);
    });
    receiver.blocking_recv().unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Unavailable, &source.shown, "the client ended"))
    })
}
