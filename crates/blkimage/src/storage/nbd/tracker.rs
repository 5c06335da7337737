//! Counts the requests that one caller has in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Requests of one caller that the server has not answered.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    pending: AtomicUsize,
    /// Maximum number of pending requests at which the caller may continue.
    enough: AtomicUsize,
    /// Number of content bytes received, for all callers of a connection.
    known: Arc<AtomicU64>,
}

impl Tracker {
    pub fn new(known: &Arc<AtomicU64>) -> Self {
        Self { known: known.clone(), ..Self::default() }
    }

    pub fn pending(&self) -> usize {
        self.pending.load(Ordering::Acquire)
    }

    /// Sets the number of requests that may still be pending when the caller continues.
    pub fn wait_until(&self, left: usize) {
        self.enough.store(left, Ordering::Relaxed);
    }

    /// Returns whether the caller may continue.
    pub fn is_reached(&self) -> bool {
        self.pending() <= self.enough.load(Ordering::Relaxed)
    }

    pub fn start(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts `length` bytes of content from the server.
    pub fn tell(&self, length: u64) {
        self.known.fetch_add(length, Ordering::Relaxed);
    }

    /// Completes a request. A thread that sees the lower number also sees the content of
    /// the request's buffer.
    pub fn complete(&self) {
        self.pending.fetch_sub(1, Ordering::Release);
    }
}
