use std::sync::atomic::{AtomicU64, Ordering};

/// How far a checksum has come. Shared between the threads that work and the one that shows it.
#[derive(Debug, Default)]
pub struct Progress {
    total: AtomicU64,
    done: AtomicU64,
}

impl Progress {
    /// Nothing done, nothing known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes of content there are in all; 0 as long as nobody knows.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Bytes of content done, zeros that were skipped included.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Says how many bytes there are in all.
    pub fn set_total(&self, bytes: u64) {
        self.total.store(bytes, Ordering::Relaxed);
    }

    /// Says that `bytes` more are done.
    pub fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
}
