//! Exports of NBD servers, through libnbd.
//!
//! [`library`] wraps the functions of libnbd and contains all unsafe code. [`mod@connect`] makes a
//! connection from a [`uri`]. [`connection`] lets several threads share a connection. [`coverage`]
//! checks that a reply contains every byte once. [`extents`] caches the extents that the server
//! reports. Servers are not trusted. An inconsistent reply is an error, even if libnbd accepts it, and
//! a missing reply is an error after [`NbdOptions::timeout`](options::NbdOptions::timeout).

mod connect;
mod connection;
mod coverage;
pub(crate) mod export;
mod extents;
mod library;
pub(crate) mod options;
mod pace;
mod talk;
mod tls;
mod tracker;
mod uri;

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

use self::connect::{NotConnected, Server, connect};
use self::connection::{Connection, Downfall};
use self::extents::{ALLOCATION, Answer, ExtentCache, MetaContext};
use self::library::{BlockSize, Cut, Handle, ReadFault, ReadFaultReason, errno_text};
use self::options::NbdOptions;
use self::uri::Uri;
use crate::bitmap::DirtyExtents;
use crate::error::{Error, ErrorKind, RefusedRead, Result};
use crate::storage::ReadMethod;
use crate::storage::Storage;
use crate::{Extent, ExtentKind};

/// An export of a server.
///
/// The protocol cannot report that an export changed while it was read. Whether it can
/// change is up to the server.
pub(crate) struct Nbd {
    connections: Vec<Connection>,
    /// Number of calls on each connection.
    load: Vec<AtomicUsize>,
    size: u64,
    /// Requests start and end at multiples of this, or at the end of the export.
    minimum: u64,
    preferred: u64,
    cut: Cut,
    /// Cached extents. `None` if the server does not report any.
    extents: Option<Mutex<ExtentCache>>,
    /// The bitmap that is read, if the server has it.
    bitmap: Option<MetaContext>,
    has_long_status: bool,
    abilities: Abilities,
    downfall: Downfall,
}

/// What a server does on request.
#[derive(Clone, Copy, Debug)]
struct Abilities {
    writes: bool,
    zeroes: bool,
    flushes: bool,
}

impl Nbd {
    /// Connects to the export that `uri` names.
    pub fn open(uri: &str, options: &NbdOptions) -> Result<Self> {
        let error = |reason: String| Error::new(ErrorKind::Connect, uri, reason);
        let parsed = Uri::new(uri).map_err(error)?;
        let first =
            connect(Server::Uri(&parsed), options).map_err(|NotConnected { reason, hint }| {
                let error = error(reason);
                match hint {
                    Some(hint) => error.with_hint(hint),
                    None => error,
                }
            })?;
        let more = if first.can_multi_conn() { options.connections.saturating_sub(1) } else { 0 };
        let others = more_connections(more.min(MAX_CONNECTIONS - 1), &parsed, options);
        Self::new(first, others, options).map_err(error)
    }

    /// Opens the default export of the server at the other end of these sockets. Uses all of them if
    /// the server announces that this is safe.
    #[cfg_attr(not(feature = "qemu-nbd"), allow(dead_code))]
    pub fn from_sockets(name: &Path, sockets: Vec<OwnedFd>, options: &NbdOptions) -> Result<Self> {
        let error = |reason: String| Error::new(ErrorKind::Connect, name, reason);
        let mut sockets = sockets.into_iter().map(Server::Socket);
        let first = sockets.next().ok_or_else(|| error("no connection".into()))?;
        let connect = |socket| connect(socket, options).map_err(|it| error(it.reason));
        let first = connect(first)?;
        let more = if first.can_multi_conn() { MAX_CONNECTIONS - 1 } else { 0 };
        let others: Result<Vec<_>> = sockets.take(more).map(connect).collect();
        Self::new(first, others?, options).map_err(error)
    }

    fn new(first: Handle, others: Vec<Handle>, options: &NbdOptions) -> Result<Self, String> {
        let size = size(&first)?;
        for other in &others {
            if self::size(other)? != size {
                return Err("the export has another size for each connection".into());
            }
        }
        let minimum = first.block_size(BlockSize::Minimum).unwrap_or(DEFAULT_MINIMUM);
        let maximum = first.block_size(BlockSize::Maximum).unwrap_or(MAX_REQUEST);
        if !minimum.is_power_of_two() || minimum > MAX_MINIMUM || maximum < minimum {
            return Err(format!(
                "the server's block sizes of {minimum} to {maximum} bytes make no sense"
            ));
        }
        let preferred = first
            .block_size(BlockSize::Preferred)
            .filter(|size| size.is_power_of_two() && (minimum..=MAX_PREFERRED).contains(size));
        let request_size = MAX_REQUEST.min(maximum) / minimum * minimum;
        let has_long_status = first.has_long_status();
        let abilities = Abilities {
            writes: !first.is_read_only(),
            zeroes: first.can_zero(),
            flushes: first.can_flush(),
        };
        let extents = first
            .can_meta_context(&ALLOCATION.name)
            .then(|| Mutex::new(ExtentCache::new(size, minimum, has_long_status)));
        let bitmap = options.bitmap.as_deref().and_then(MetaContext::of_bitmap);
        let bitmap = bitmap.filter(|context| first.can_meta_context(&context.name));
        let downfall = Downfall::default();
        let connections: Vec<Connection> = std::iter::once(first)
            .chain(others)
            .map(|handle| {
                if !size.is_multiple_of(minimum) {
                    handle.allow_unaligned();
                }
                Connection::new(handle, options.timeout, downfall.clone())
            })
            .collect::<Result<_, io::Error>>()
            .map_err(|error| format!("cannot watch the connection: {error}"))?;
        Ok(Self {
            load: connections.iter().map(|_| AtomicUsize::new(0)).collect(),
            connections,
            size,
            minimum,
            preferred: preferred.unwrap_or(minimum),
            cut: Cut { request_size: request_size as usize, depth: MAX_DEPTH },
            extents,
            bitmap,
            has_long_status,
            abilities,
            downfall,
        })
    }

    /// Returns the connection with the fewest calls, and adds one to its load.
    fn connection(&self) -> (&Connection, Loaded<'_>) {
        let loads = self.load.iter().zip(&self.connections);
        let (load, connection) = loads
            .min_by_key(|(load, _)| load.load(Ordering::Relaxed))
            .expect("there is a connection");
        load.fetch_add(1, Ordering::Relaxed);
        (connection, Loaded(load))
    }

    /// Reads a range that the server accepts: whole blocks, or up to the end of the export.
    fn read_aligned(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let (connection, _loaded) = self.connection();
        connection.read(buf, offset, self.cut).map_err(|fault| self.read_error(&fault))
    }

    /// Reads the requested part of one block.
    fn read_partly(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let start = offset / self.minimum * self.minimum;
        let end = (start + self.minimum).min(self.size);
        let mut block = vec![0; (end - start) as usize];
        self.read_aligned(&mut block, start)?;
        buf.copy_from_slice(&block[(offset - start) as usize..][..buf.len()]);
        Ok(())
    }

    fn read_error(&self, fault: &ReadFault) -> io::Error {
        let ReadFault { offset, length, reason } = fault;
        let request = format!("{length} bytes at {offset}");
        match reason {
            ReadFaultReason::Malformed(what) => {
                io::Error::other(format!("the server's answer of {request} {what}"))
            }
            ReadFaultReason::Errno(errno) if !self.is_down(*errno) => {
                let answer = format!("the server's answer to {request}: {}", errno_text(*errno));
                match blksys::is_of_bytes(&io::Error::from_raw_os_error(*errno)) {
                    true => io::Error::other(RefusedRead(answer)),
                    false => io::Error::other(answer),
                }
            }
            ReadFaultReason::Refused(refusal) if !self.is_down(refusal.errno) => {
                io::Error::other(format!("{request}: {}", refusal.text))
            }
            ReadFaultReason::Errno(_) | ReadFaultReason::Refused(_) => self.down_error(),
        }
    }

    fn is_down(&self, errno: i32) -> bool {
        errno == Errno::NOTCONN.raw_os_error() || self.downfall.get().is_some()
    }

    /// Returns the error for a lost connection. Fails all other connections, so that no
    /// thread waits for them.
    fn down_error(&self) -> io::Error {
        let lost = || (io::ErrorKind::ConnectionAborted, "the connection is lost".into());
        let (kind, reason) = self.downfall.get_or_init(lost);
        for connection in &self.connections {
            connection.fail(reason);
        }
        io::Error::new(*kind, reason.clone())
    }

    fn ask(&self, context: MetaContext, asked: Range<u64>) -> io::Result<Option<Answer>> {
        let (connection, _loaded) = self.connection();
        let sink = Answer::new(context, asked.clone(), self.size);
        let errno = match connection.block_status(asked.end - asked.start, asked.start, sink) {
            Ok((answer, 0)) => {
                return match answer.fault() {
                    None => Ok(Some(answer)),
                    Some(fault) => {
                        Err(io::Error::other(format!("the server's list of extents {fault}")))
                    }
                };
            }
            Ok((_, errno)) => errno,
            Err(fault) => fault.errno,
        };
        if self.is_down(errno) { Err(self.down_error()) } else { Ok(None) }
    }
}

impl Storage for Nbd {
    fn read_method(&self) -> ReadMethod {
        ReadMethod::Nbd
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = self.size.saturating_sub(offset);
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        if length > 0 {
            self.read_exact_at(&mut buf[..length], offset)?;
        }
        Ok(length)
    }

    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64).filter(|end| *end <= self.size);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let skip = offset.next_multiple_of(self.minimum).min(end) - offset;
        let (head, rest) = buf.split_at_mut(skip as usize);
        if !head.is_empty() {
            self.read_partly(head, offset)?;
        }
        (buf, offset) = (rest, offset + skip);
        let whole = if end == self.size { end } else { end / self.minimum * self.minimum };
        let (middle, tail) = buf.split_at_mut(whole.saturating_sub(offset) as usize);
        if !middle.is_empty() {
            self.read_aligned(middle, offset)?;
        }
        if !tail.is_empty() {
            self.read_partly(tail, end - tail.len() as u64)?;
        }
        Ok(())
    }

    fn extent(&self, offset: u64, limit: u64) -> io::Result<Extent> {
        let unknown = Extent { offset, length: limit, kind: ExtentKind::Data };
        let Some(extents) = &self.extents else { return Ok(unknown) };
        let mut cache = extents.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.find(offset).is_none() {
            let asked = cache.request(offset);
            match self.ask(ALLOCATION, asked.clone())? {
                Some(answer) => cache.store(answer),
                None => cache.lose(asked.start),
            }
        }
        match cache.find(offset) {
            Some(found) => Ok(Extent { length: found.length.min(limit), ..found }),
            // The server reported less than a block. This block has to be read.
            None => {
                Ok(Extent { length: limit.min(self.minimum - offset % self.minimum), ..unknown })
            }
        }
    }

    fn dirty_extents(&self) -> io::Result<Option<Vec<Range<u64>>>> {
        let Some(context) = &self.bitmap else { return Ok(None) };
        let mut extents = DirtyExtents::new(self.size);
        let mut cache = ExtentCache::new(self.size, self.minimum, self.has_long_status);
        let mut offset = 0;
        while offset < self.size {
            let asked = cache.request(offset);
            let answer = self.ask(context.clone(), asked)?;
            let missing = || io::Error::other("the server does not send the bitmap");
            cache.store(answer.ok_or_else(missing)?);
            let start = offset;
            while offset < self.size
                && let Some(found) = cache.find(offset)
            {
                let end = offset + found.length;
                if found.kind == ExtentKind::Data && extents.push(offset..end).is_none() {
                    return Err(io::Error::other("the bitmap has more than 16 Mi extents"));
                }
                offset = end;
            }
            if offset == start {
                return Err(io::Error::other("the server sends less than a block of the bitmap"));
            }
        }
        Ok(Some(extents.into_list()))
    }

    fn granularity(&self) -> u64 {
        self.preferred
    }

    fn queue_depth(&self) -> usize {
        QUEUE_DEPTH
    }
}

/// Takes one call off the load of a connection on drop.
struct Loaded<'a>(&'a AtomicUsize);

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Opens up to `count` further connections. A server may refuse some of them.
fn more_connections(count: usize, uri: &Uri, options: &NbdOptions) -> Vec<Handle> {
    let timeout = options.timeout.map_or(MAX_PATIENCE, |timeout| timeout.min(MAX_PATIENCE));
    let options = NbdOptions { timeout: Some(timeout), ..options.clone() };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map_while(|_| {
                let connect = || connect(Server::Uri(uri), &options);
                thread::Builder::new().spawn_scoped(scope, connect).ok()
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()?.ok()).collect()
    })
}

fn size(handle: &Handle) -> Result<u64, String> {
    match handle.size().map(u64::try_from) {
        Ok(Ok(size)) => Ok(size),
        Ok(Err(_)) => Err("the export is larger than 8 EiB".into()),
        Err(fault) => Err(fault.text),
    }
}

/// Maximum number of connections to a server. More are no faster.
/// Limit in connections.
const MAX_CONNECTIONS: usize = 16;

/// Maximum time to wait for a further connection. Servers that announce more connections than they serve leave them
/// waiting.
/// Limit in seconds.
const MAX_PATIENCE: Duration = Duration::from_secs(5);

/// Maximum size of a request to a server. Larger ones do not fit into the socket's buffer, smaller ones need more
/// round trips.
/// Limit in bytes.
const MAX_REQUEST: u64 = 256 << 10;

/// Maximum number of requests in flight for one read.
/// Limit in requests.
const MAX_DEPTH: usize = 16;

/// Minimum block size in bytes if the server does not announce one.
const DEFAULT_MINIMUM: u64 = 512;

/// Largest minimum block size that the protocol allows, in bytes.
const MAX_MINIMUM: u64 = 64 << 10;

/// Maximum granularity of a [`Storage`] in bytes.
const MAX_PREFERRED: u64 = 2 << 20;

/// Number of threads that read at once, to hide the latency of the server. With 1 MiB each, this is
/// enough for 1 Gbit/s at a latency of 60 ms.
const QUEUE_DEPTH: usize = 8;

#[cfg(test)]
mod tests;
