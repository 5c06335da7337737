//! The progress of work on maps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::progress::{Amount, Counts, Reporter};

/// Shows how far `work` is, which says how many of `total` bytes it has done.
pub fn watched<T>(
    reporter: &Reporter,
    total: u64,
    work: impl FnOnce(&mut dyn FnMut(u64)) -> T,
) -> T {
    let done = Arc::new(AtomicU64::new(0));
    let watch = reporter.watch(Some(Amount { total, stored: None }), {
        let done = done.clone();
        move || {
            let done = done.load(Relaxed).min(total);
            Counts { done, data: done, read: done }
        }
    });
    let result = work(&mut |bytes| done.store(bytes, Relaxed));
    drop(watch);
    result
}
