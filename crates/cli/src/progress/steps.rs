//! Work that has a number of steps, and no images.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::pace::{Amount, Counts};
use super::reporter::{Reporter, When};
use super::snapshot::Unit;

/// Steps that are shown on a terminal until this is dropped.
pub struct Steps {
    done: Arc<AtomicU64>,
    _reporter: Reporter,
}

impl Steps {
    /// `total` steps of what `name` says.
    pub fn new(name: &str, total: u64) -> Self {
        let done = Arc::new(AtomicU64::new(0));
        let reporter = Reporter::start(When::Always, Some(1), Unit::Steps);
        reporter.begin(OsStr::new(name));
        let counted = done.clone();
        reporter.look_at(Some(Amount { total, stored: Some(total) }), move || {
            let done = counted.load(Relaxed);
            Counts { done, data: done, read: done }
        });
        Self { done, _reporter: reporter }
    }

    /// One more is done.
    pub fn advance(&self) {
        self.done.fetch_add(1, Relaxed);
    }

    /// As many as `done` are done.
    pub fn set(&self, done: u64) {
        self.done.store(done, Relaxed);
    }
}
