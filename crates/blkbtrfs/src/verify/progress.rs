//! How far a verification has come.

use std::sync::atomic::{AtomicU64, Ordering};

/// How far the verification has come, of [`FileSystem::verified_bytes`](crate::FileSystem::verified_bytes).
/// Shared between the threads that work and the one that shows it.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
}

impl Progress {
    /// Nothing done.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes that were verified, every mirror of them counted, and those of rows with parities.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub(super) fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
}
