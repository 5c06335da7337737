use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Progress of a pass over an image, and a flag to cancel it. Shared by the threads that work and
/// the thread that watches them.
#[derive(Debug, Default)]
pub struct Progress {
    total: AtomicU64,
    done: AtomicU64,
    data: AtomicU64,
    is_cancelled: AtomicBool,
}

impl Progress {
    /// Creates progress with nothing done and an unknown total.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the size of the content in bytes, or 0 while it is unknown.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes done, including zeros that were skipped.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes done that were data, and so were read or hashed.
    pub fn data(&self) -> u64 {
        self.data.load(Ordering::Relaxed)
    }

    /// Cancels the pass. Each thread stops with an error before its next chunk or read.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns whether the pass was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Sets the size of the content in bytes.
    pub fn set_total(&self, bytes: u64) {
        self.total.store(bytes, Ordering::Relaxed);
    }

    /// Adds `bytes` to the bytes done, of which `data` bytes were data.
    pub fn advance(&self, bytes: u64, data: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        self.data.fetch_add(data, Ordering::Relaxed);
    }
}
