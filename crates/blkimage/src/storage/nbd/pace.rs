//! The pace at which a server sends content.
//!
//! A server that sends may still make no progress: a byte now and then, an endless series of errors,
//! chunks of one byte. Only content counts. The server owes a minimum of it in every period, counting
//! the time in which a reply is pending.

use std::time::{Duration, Instant};

/// The content that one connection has received in a period.
#[derive(Debug)]
pub(super) struct Pace {
    period: Duration,
    /// Part of the period that is over, without the time since `waiting`.
    spent: Duration,
    /// Start of the current wait, if a reply is pending.
    waiting: Option<Instant>,
    /// Number of content bytes at the start of the period.
    start: u64,
}

impl Pace {
    /// Creates the pace of a server that may be silent for `timeout`.
    pub fn new(timeout: Duration) -> Self {
        Self { period: timeout * PATIENCE, spent: Duration::ZERO, waiting: None, start: 0 }
    }

    /// Starts waiting, unless it has started already.
    pub fn start(&mut self, now: Instant) {
        self.waiting.get_or_insert(now);
    }

    /// Stops waiting.
    pub fn pause(&mut self, now: Instant) {
        if let Some(since) = self.waiting.take() {
            self.spent += now.saturating_duration_since(since);
        }
    }

    /// Returns whether the server is too slow, given the total number of content bytes.
    pub fn is_too_slow(&mut self, now: Instant, known: u64) -> bool {
        let owed = self.period.as_secs_f64() * MIN_RATE as f64;
        if known.saturating_sub(self.start) as f64 >= owed {
            self.spent = Duration::ZERO;
            self.waiting = self.waiting.map(|_| now);
            self.start = known;
        }
        let since =
            self.waiting.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.spent + since > self.period
    }
}

/// Minimum rate of content from a server, low enough for every honest one: a sector every half second, or 1/64 of a
/// line of 64 KiB/s for each of 16 connections.
/// Limit in bytes a second.
pub(super) const MIN_RATE: u64 = 1 << 10;

/// Maximum time for which a server may be slower than `MIN_RATE`. With a timeout of a minute, 16 connections that
/// share a line of 64 KiB/s have each completed a request of 256 KiB after about a tenth of it.
/// Limit in timeouts.
const PATIENCE: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the time after which a server is too slow that sends `bytes` after each of these times.
    fn patience(bytes: u64, every: Duration, pause: Duration) -> Option<Duration> {
        patience_of(SECOND, bytes, every, pause)
    }

    fn patience_of(
        timeout: Duration,
        bytes: u64,
        every: Duration,
        pause: Duration,
    ) -> Option<Duration> {
        let mut pace = Pace::new(timeout);
        let (mut now, mut known, mut waited) = (Instant::now(), 0, Duration::ZERO);
        for _ in 0..2000 {
            pace.start(now);
            now += every;
            waited += every;
            known += bytes;
            if pace.is_too_slow(now, known) {
                return Some(waited);
            }
            pace.pause(now);
            now += pause;
        }
        None
    }

    #[test]
    fn a_slow_line_is_accepted() {
        assert_eq!(patience(64 << 10, SECOND, Duration::ZERO), None);
        assert_eq!(patience(256 << 10, SECOND * 9, SECOND), None);
        assert_eq!(patience(512, SECOND / 2, SECOND * 100), None);
        // One of 16 connections that share 64 KiB/s, with replies that arrive as a whole.
        assert_eq!(patience_of(SECOND * 60, 256 << 10, SECOND * 64, Duration::ZERO), None);
    }

    #[test]
    fn a_drip_is_too_slow() {
        for every in [SECOND / 100, SECOND / 2, SECOND] {
            for pause in [Duration::ZERO, SECOND / 2, SECOND * 100] {
                for bytes in [0, 1, 5] {
                    let waited = patience(bytes, every, pause).unwrap();
                    assert!((SECOND * 10..=SECOND * 12).contains(&waited), "{waited:?}");
                }
            }
        }
        assert!(patience(512, SECOND, Duration::ZERO).is_some());
    }

    #[test]
    fn early_content_does_not_count_for_later_periods() {
        let mut pace = Pace::new(SECOND);
        let start = Instant::now();
        pace.start(start);
        assert!(!pace.is_too_slow(start, 1 << 40));
        assert!(!pace.is_too_slow(start + SECOND * 10, 1 << 40));
        assert!(pace.is_too_slow(start + SECOND * 11, (1 << 40) + 100));
    }
}
