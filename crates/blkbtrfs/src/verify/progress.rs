use std::sync::atomic::{AtomicU64, Ordering};

use crate::filesystem::FileSystem;

/// How far the verification has come. Shared between the threads that work and the one that shows
/// it.
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

    /// Bytes there are to verify, every mirror counted, as far as that is known before.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Bytes that were read.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub(super) fn set_total(&self, filesystem: &FileSystem) {
        let used = filesystem
            .allocations()
            .iter()
            .map(|it| it.used.unwrap_or(0).saturating_mul(it.mirrors.into()))
            .fold(0, u64::saturating_add);
        self.total.store(used, Ordering::Relaxed);
    }

    pub(super) fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
}
