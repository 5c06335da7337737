//! The passes of a copy, and how far they are: one that writes, one that reads back, and one that compares with a map.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use blksum::Progress;

use crate::progress::{Amount, Counts, Pass, Reporter, Watch};

/// The passes of a copy.
pub struct Passes {
    pub writing: Progress,
    pub reading: Progress,
    pub comparing: Progress,
    reads_back: bool,
    /// Bytes that are compared with a map.
    compared: u64,
    /// Bytes of all passes, or [`UNKNOWN`].
    total: AtomicU64,
}

impl Passes {
    /// The passes over a source whose size is not known yet, `compared` bytes of which are compared with a map.
    pub fn new(reads_back: bool, compared: u64) -> Arc<Self> {
        let [writing, reading, comparing] = [(); 3].map(|()| Progress::new());
        let total = AtomicU64::new(UNKNOWN);
        Arc::new(Self { writing, reading, comparing, reads_back, compared, total })
    }

    /// Sets the number of bytes of the first two passes. The second one counts only if there is one.
    pub fn expect(&self, written: u64, read: u64) {
        let read = if self.reads_back { read } else { 0 };
        self.total.store(written.saturating_add(read), Relaxed);
    }

    /// Reports the progress until the watch is dropped.
    pub fn watch<'a>(self: &Arc<Self>, reporter: &'a Reporter) -> Watch<'a> {
        let passes = Arc::clone(self);
        reporter.watch_growing(move || {
            let data = passes.sum(Progress::data);
            let counts = Counts { done: passes.sum(Progress::done), data, read: data };
            (passes.amount(), counts, passes.pass())
        })
    }

    /// Returns the pass that is running, if there are two.
    fn pass(&self) -> Option<Pass> {
        let has_begun = self.reading.total() > 0 || self.reading.done() > 0;
        self.reads_back.then_some(if has_begun { Pass::ReadBack } else { Pass::Write })
    }

    fn amount(&self) -> Option<Amount> {
        let total = match (self.total.load(Relaxed), self.writing.total(), self.reading.total()) {
            (UNKNOWN, 0, 0) => return None,
            // The end of a stream came.
            (UNKNOWN, 0, read) => self.writing.done().saturating_add(read),
            // A delta states how large the content is.
            (UNKNOWN, written, _) => written.saturating_mul(1 + u64::from(self.reads_back)),
            (total, ..) => total,
        };
        Some(Amount { total: total.saturating_add(self.compared), stored: None })
    }

    fn sum(&self, of: fn(&Progress) -> u64) -> u64 {
        let passes = [&self.writing, &self.reading, &self.comparing];
        passes.into_iter().map(of).fold(0, u64::saturating_add)
    }
}

const UNKNOWN: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn total(passes: &Passes) -> Option<u64> {
        passes.amount().map(|amount| amount.total)
    }

    #[test]
    fn totals() {
        let known = Passes::new(true, 0);
        known.expect(10, 100);
        assert_eq!(total(&known), Some(110));
        let compared = Passes::new(true, 7);
        compared.expect(10, 100);
        assert_eq!(total(&compared), Some(117));
        let once = Passes::new(false, 0);
        once.expect(10, 100);
        assert_eq!(total(&once), Some(10));
        once.expect(0, 0);
        assert_eq!(total(&once), Some(0));
        let delta = Passes::new(true, 0);
        assert_eq!(total(&delta), None);
        delta.writing.set_total(50);
        assert_eq!(total(&delta), Some(100));
        let stream = Passes::new(true, 0);
        stream.writing.advance(70, 70);
        assert_eq!(total(&stream), None);
        stream.reading.set_total(70);
        assert_eq!(total(&stream), Some(140));
    }
}
