//! Whether a server gets on with what it owes.
//!
//! A server that is heard may still give nothing: a byte now and then, errors without an end, pieces
//! of one byte. What counts is content, of which it owes some in every so much time in which there
//! was something to wait for.

use std::time::{Duration, Instant};

/// The content that one connection has given, against the time that it took.
#[derive(Debug)]
pub(super) struct Pace {
    period: Duration,
    /// How much of the period is over, but for the time since `waiting`.
    spent: Duration,
    /// Since when something is owed.
    waiting: Option<Instant>,
    /// Bytes that were known when the period began.
    start: u64,
}

impl Pace {
    /// For a server that may be silent for `timeout`.
    pub fn new(timeout: Duration) -> Self {
        Self { period: timeout * PATIENCE, spent: Duration::ZERO, waiting: None, start: 0 }
    }

    /// Something is owed from now on.
    pub fn start(&mut self, now: Instant) {
        self.waiting.get_or_insert(now);
    }

    /// Nothing is owed any more.
    pub fn pause(&mut self, now: Instant) {
        if let Some(since) = self.waiting.take() {
            self.spent += now.saturating_duration_since(since);
        }
    }

    /// Whether too little has come, if `known` bytes are known by now.
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

/// Bytes of content in a second that are few enough for every server that means well: a sector in each
/// half second, or 1/64 of a line of 64 KiB/s for each connection if there are 16.
pub(super) const MIN_RATE: u64 = 1 << 10;

/// How many timeouts are one period. With a timeout of a minute, 16 connections that share a line of
/// 64 KiB/s have all completed a request of 256 KiB after a tenth of it.
const PATIENCE: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// How long a server is waited for that gives `bytes` after each of these times.
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
    fn a_slow_line_will_do() {
        assert_eq!(patience(64 << 10, SECOND, Duration::ZERO), None);
        assert_eq!(patience(256 << 10, SECOND * 9, SECOND), None);
        assert_eq!(patience(512, SECOND / 2, SECOND * 100), None);
        // One of 16 connections that share 64 KiB/s, each with a request that comes at its end.
        assert_eq!(patience_of(SECOND * 60, 256 << 10, SECOND * 64, Duration::ZERO), None);
    }

    #[test]
    fn a_drip_will_not() {
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
    fn the_future_is_not_paid_in_advance() {
        let mut pace = Pace::new(SECOND);
        let start = Instant::now();
        pace.start(start);
        assert!(!pace.is_too_slow(start, 1 << 40));
        assert!(!pace.is_too_slow(start + SECOND * 10, 1 << 40));
        assert!(pace.is_too_slow(start + SECOND * 11, (1 << 40) + 100));
    }
}
