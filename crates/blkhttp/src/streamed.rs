//! Reads from a server without ranges, which sends the object once, from its start to its end.
//!
//! The first bytes are kept, so that a format can be recognised. Of the others, the last ones are kept for readers that are a little
//! late, and only a little more is received than readers asked for.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::blocks::Blocks;
use crate::client::Reply;
use crate::error::Fault;
use crate::rate::Rate;
use crate::source::{Source, lock};
use crate::transfer::too_slow;
use crate::{Error, ErrorKind};

/// An object that is read in order.
pub(crate) struct Streamed {
    shared: Arc<Shared>,
    abort: AbortHandle,
}

struct Shared {
    source: Arc<Source>,
    state: Mutex<State>,
    /// Signals bytes and the end.
    arrived: Condvar,
    /// Signals that a reader asks for more.
    asked: Notify,
}

#[derive(Default)]
struct State {
    head: Vec<u8>,
    blocks: Blocks,
    /// Offset of the first byte that is still in `blocks`.
    start: u64,
    received: u64,
    /// End of the furthest read so far.
    asked: u64,
    outcome: Option<Result<(), Error>>,
}

impl Streamed {
    /// Begins to read an object whose body arrives.
    pub fn new(source: Arc<Source>, reply: Reply) -> Self {
        let handle = source.client.handle().clone();
        let shared = Arc::new(Shared {
            source,
            state: Mutex::default(),
            arrived: Condvar::new(),
            asked: Notify::new(),
        });
        let receiving = shared.clone();
        let task = handle.spawn(async move {
            let result = receiving.receive(reply).await;
            let result = result.map_err(|fault| receiving.source.fail(fault));
            lock(&receiving.state).outcome = Some(result);
            receiving.arrived.notify_all();
        });
        Self { shared, abort: task.abort_handle() }
    }

    /// Reads the bytes at an offset, at least one unless it is the end.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let mut state = lock(&self.shared.state);
        let end = offset.saturating_add(buf.len() as u64);
        if end > state.asked {
            state.asked = end;
            self.shared.asked.notify_one();
        }
        loop {
            if let Some(n) = state.read(buf, offset) {
                return Ok(n);
            }
            if offset < state.start {
                let reason =
                    "the server has no ranges, so bytes cannot be read again; download it first";
                let error = Error::new(ErrorKind::Unsupported, &self.shared.source.shown, reason);
                return Err(error.into());
            }
            match &state.outcome {
                Some(Ok(())) => return Ok(0),
                Some(Err(error)) => return Err(error.clone().into()),
                None => {}
            }
            state = self.shared.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Streamed {
    /// Ends the request.
    fn drop(&mut self) {
        self.abort.abort();
    }
}

impl Shared {
    /// Receives the object, as far as readers ask for it.
    async fn receive(&self, mut reply: Reply) -> Result<(), Fault> {
        let mut rate = Rate::new(self.source.timeout, Instant::now());
        loop {
            let since = Instant::now();
            while !lock(&self.state).wants_more() {
                self.asked.notified().await;
            }
            rate.pause(since.elapsed());
            let received = reply.next().await.map_err(|fault| match fault {
                Fault::Temporary { reason, .. } => Fault::temporary(format!(
                    "{reason}; the server has no ranges, so it cannot continue from there"
                )),
                fault => fault,
            })?;
            let Some(bytes) = received else { return Ok(()) };
            self.source.count_bytes(bytes.len());
            lock(&self.state).push(&bytes);
            self.arrived.notify_all();
            rate.count(bytes.len());
            if rate.is_too_slow(Instant::now()) {
                return Err(too_slow());
            }
        }
    }
}

impl State {
    fn wants_more(&self) -> bool {
        self.received < self.asked.saturating_add(AHEAD)
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = HEAD - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.blocks.append(self.received, bytes, u64::MAX);
        self.received += bytes.len() as u64;
        self.start = self.blocks.free_before(self.asked.saturating_sub(BEHIND));
    }

    /// Copies bytes that are there.
    fn read(&mut self, buf: &mut [u8], offset: u64) -> Option<usize> {
        let from = usize::try_from(offset).ok();
        let head = from.and_then(|from| self.head.get(from..)).filter(|head| !head.is_empty());
        if let Some(head) = head {
            let n = head.len().min(buf.len());
            buf[..n].copy_from_slice(&head[..n]);
            return Some(n);
        }
        let bytes = self.blocks.get(offset, buf.len())?;
        buf[..bytes.len()].copy_from_slice(&bytes);
        Some(bytes.len())
    }
}

/// Number of bytes at the start that are kept.
const HEAD: usize = 1 << 20;

/// Number of bytes that are received before they are asked for.
const AHEAD: u64 = 8 << 20;

/// Number of bytes before the furthest read that are kept.
/// Limit in bytes.
const BEHIND: u64 = 32 << 20;
