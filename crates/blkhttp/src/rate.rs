//! The minimum rate of a server.
//!
//! A server that sends may still make no progress: a byte now and then, an endless series of errors. Only content counts.

use std::time::{Duration, Instant};

/// The content that one range has received in a period.
#[derive(Debug)]
pub(crate) struct Rate {
    /// `None` waits forever.
    period: Option<Duration>,
    start: Instant,
    bytes: u64,
}

impl Rate {
    /// Creates the rate of a server that may be silent for `timeout`.
    pub fn new(timeout: Option<Duration>, now: Instant) -> Self {
        Self {
            period: timeout.map(|timeout| timeout.saturating_mul(PATIENCE)),
            start: now,
            bytes: 0,
        }
    }

    /// Leaves out time in which the server was not asked for anything.
    pub fn pause(&mut self, time: Duration) {
        self.start = self.start.checked_add(time).unwrap_or(self.start);
    }

    /// Counts bytes that arrived.
    pub fn count(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// Returns whether the server is too slow. A period ends when its bytes are there.
    pub fn is_too_slow(&mut self, now: Instant) -> bool {
        let Some(period) = self.period else { return false };
        if self.bytes as f64 >= period.as_secs_f64() * MIN_RATE as f64 {
            (self.start, self.bytes) = (now, 0);
        }
        now.saturating_duration_since(self.start) > period
    }
}

/// Minimum rate of content for one range, low enough for every honest server.
/// Limit in bytes a second.
const MIN_RATE: u64 = 1 << 10;

/// Maximum time for which a server may be slower than [`MIN_RATE`].
/// Limit in timeouts.
const PATIENCE: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the time after which a server is too slow that sends `bytes` after each of these times.
    fn patience(bytes: usize, every: Duration) -> Option<Duration> {
        let start = Instant::now();
        let mut rate = Rate::new(Some(SECOND), start);
        (1..2000).map(|i| every * i).find(|&passed| {
            rate.count(bytes);
            rate.is_too_slow(start + passed)
        })
    }

    #[test]
    fn a_slow_line_is_accepted() {
        assert_eq!(patience(64 << 10, SECOND), None);
        assert_eq!(patience(512, SECOND / 2), None);
        assert_eq!(patience(64 << 10, SECOND * 9), None);
    }

    #[test]
    fn a_drip_is_too_slow() {
        for every in [SECOND / 100, SECOND / 2, SECOND] {
            for bytes in [0, 1, 5] {
                let waited = patience(bytes, every).unwrap();
                assert!((SECOND * 10..=SECOND * 12).contains(&waited), "{waited:?}");
            }
        }
    }

    #[test]
    fn pauses_and_no_timeout_do_not_count() {
        let start = Instant::now();
        let mut rate = Rate::new(Some(SECOND), start);
        rate.pause(SECOND * 5);
        assert!(!rate.is_too_slow(start + SECOND * 15));
        assert!(rate.is_too_slow(start + SECOND * 16));
        assert!(!Rate::new(None, start).is_too_slow(start + SECOND * 1000));
    }
}
