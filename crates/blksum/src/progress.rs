use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How far a pass over an image has come, and whether it is still wanted. Shared between the threads
/// that work and the one that watches them.
#[derive(Debug, Default)]
pub struct Progress {
    total: AtomicU64,
    done: AtomicU64,
    data: AtomicU64,
    is_cancelled: AtomicBool,
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

    /// Bytes of it that had data, and so were read or looked at.
    pub fn data(&self) -> u64 {
        self.data.load(Ordering::Relaxed)
    }

    /// Ends the pass soon, with an error: each thread stops before its next chunk.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Says how many bytes there are in all.
    pub fn set_total(&self, bytes: u64) {
        self.total.store(bytes, Ordering::Relaxed);
    }

    /// Says that `bytes` more are done, `data` of them with data.
    pub fn advance(&self, bytes: u64, data: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        self.data.fetch_add(data, Ordering::Relaxed);
    }
}
