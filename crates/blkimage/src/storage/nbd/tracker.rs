//! Counts what one caller has in flight, for those who wait and those who complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Requests of one caller that the server has yet to answer.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    pending: AtomicUsize,
    /// How few may be pending for the caller to go on.
    enough: AtomicUsize,
    /// Bytes of content that are known, for all callers of a connection.
    known: Arc<AtomicU64>,
}

impl Tracker {
    pub fn new(known: &Arc<AtomicU64>) -> Self {
        Self { known: known.clone(), ..Self::default() }
    }

    pub fn pending(&self) -> usize {
        self.pending.load(Ordering::Acquire)
    }

    /// Says that the caller waits for all but `left` of its requests.
    pub fn wait_until(&self, left: usize) {
        self.enough.store(left, Ordering::Relaxed);
    }

    /// Whether the caller need not wait any longer.
    pub fn is_reached(&self) -> bool {
        self.pending() <= self.enough.load(Ordering::Relaxed)
    }

    pub fn start(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
    }

    /// The server has told `length` bytes of content.
    pub fn tell(&self, length: u64) {
        self.known.fetch_add(length, Ordering::Relaxed);
    }

    /// What was written to the request's buffer is seen by whoever sees the lower number.
    pub fn complete(&self) {
        self.pending.fetch_sub(1, Ordering::Release);
    }
}
