//! Progress of a verification.

use std::sync::atomic::{AtomicU64, Ordering};

/// Progress of a verification, out of
/// [`FileSystem::verified_bytes`](crate::FileSystem::verified_bytes). Shared by the threads that
/// work and the thread that shows it.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
}

impl Progress {
    /// Creates progress with nothing done.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of bytes verified, counting every mirror, and rows with parities once
    /// more.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub(super) fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
}
