//! One object, opened.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;
use std::{fmt, io};

use crate::client::Client;
use crate::error::Fault;
use crate::rate::Rate;
use crate::retry::Backoff;
use crate::sign::Target;
use crate::source::Source;
use crate::transfer::{fetch, start};
use crate::version::{Content, Version};
use crate::{Error, ErrorKind, HttpOptions, Result, Url, Validator};

/// An object on a server, opened.
///
/// Several threads may read it at once.
pub struct Object {
    source: Arc<Source>,
    size: Option<u64>,
    has_ranges: bool,
    head: Vec<u8>,
}

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

impl Object {
    /// Opens an object with one request, which gets its first bytes.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached, has no such object, does not allow reading it, or sends an invalid answer.
    pub fn open(url: &Url, options: &HttpOptions) -> Result<Self> {
        if url.is_s3() {
            return Err(Error::new(ErrorKind::Unsupported, url, "is an object of S3"));
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
        let opening = source.clone();
        let (size, has_ranges, head) = block_on(&source, async move { first(&opening).await })?;
        Ok(Self { source, size, has_ranges, head })
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
        self.has_ranges
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
    /// Without ranges, `offset` is that of the bytes that were not read yet, or lies within the first MiB.
    ///
    /// # Errors
    ///
    /// Fails with an error that contains an [`Error`].
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if let Some(error) = self.source.changed() {
            return Err(error.into());
        }
        let head = usize::try_from(offset).ok().and_then(|offset| self.head.get(offset..));
        if let Some(head) = head.filter(|head| !head.is_empty()) {
            let n = head.len().min(buf.len());
            buf[..n].copy_from_slice(&head[..n]);
            return Ok(n);
        }
        let left = self.size.unwrap_or(0).saturating_sub(offset);
        let n = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if n == 0 {
            return Ok(0);
        }
        let (source, range) = (self.source.clone(), offset..offset + n as u64);
        let bytes = block_on(&self.source, async move {
            let mut bytes = Vec::new();
            fetch(&source, range, None, |_, more| bytes.extend_from_slice(more)).await?;
            Ok(bytes)
        })?;
        buf[..n].copy_from_slice(&bytes);
        Ok(n)
    }

    /// Announces that these bytes will be read once, soon, and in about the order of the calls. Never blocks.
    pub fn will_need(&self, _offset: u64, _length: u64) {}

    /// Returns the number of bytes that should be announced ahead of reads. May change while bytes are read.
    pub fn read_ahead(&self) -> u64 {
        16 << 20
    }

    /// Returns the reason if the object changed since it was opened, as far as the server said so.
    pub fn changed(&self) -> Option<String> {
        Some(self.source.changed()?.reason().to_owned())
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

/// Asks for the first bytes of an object.
async fn first(source: &Source) -> Result<(Option<u64>, bool, Vec<u8>)> {
    let mut backoff = Backoff::new(source.retries);
    let mut rate = Rate::new(source.timeout, Instant::now());
    let arriving = start(source, &(0..HEAD), &mut backoff, &mut rate).await?;
    source.pin(arriving.version.clone());
    let size = arriving.version.length;
    match (&arriving.content, size) {
        (Content::Range(range), Some(length)) if range.start == 0 => {
            let mut head = Vec::new();
            let end = length.min(HEAD);
            fetch(source, 0..end, Some(arriving), |_, bytes| head.extend_from_slice(bytes)).await?;
            Ok((size, true, head))
        }
        (Content::Outside, Some(0)) => Ok((size, true, Vec::new())),
        (Content::Whole, _) => {
            let fault = Fault::Final(ErrorKind::Unsupported, "the server has no ranges".to_owned());
            Err(source.fail(fault))
        }
        _ => {
            Err(source.fail(Fault::protocol("the server sent another range than the first bytes")))
        }
    }
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

/// Number of bytes at the start of an object that opening it gets.
const HEAD: u64 = 1 << 20;
