//! Speed of the work, and the amount that is left.
//!
//! Holes take almost no time. A disk of 8 TiB may store 1 GiB, so the content that is left says little about
//! the time that is left. Both figures are about data:
//!
//! - The speed covers the last seconds. Intervals with only holes do not count.
//! - The data left is estimated from what the image stores and has not been read of it, as far as that
//!   is known: files tell how much is allocated. Each byte read so far has brought some bytes of data,
//!   more than one where it is compressed, and the rest is taken to be alike. That is too much where
//!   files store what is never read (snapshots, clusters that an overlay replaces), but never more
//!   than the content left.
//! - Otherwise (NBD, or more was read than is allocated) the rest is taken to have as much data as what
//!   has passed, once that is a tenth of the content or took a while. After one second
//!   of work, at most nine seconds are estimated.

use std::time::Duration;

/// The progress of a piece of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of content done, holes included.
    pub done: u64,
    /// Bytes of it that had data.
    pub data: u64,
    /// Bytes that were read for these from where the content is stored.
    pub read: u64,
}

/// The amount of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    /// Bytes of content.
    pub total: u64,
    /// Bytes that are stored of it, if that is known.
    pub stored: Option<u64>,
}

/// The speed of the last seconds.
#[derive(Debug, Default)]
pub struct Pace {
    last: Option<(Duration, Counts)>,
    /// Bytes of data and seconds, of which older ones count less and less.
    data: f64,
    seconds: f64,
}

impl Pace {
    /// Takes in that `counts` was reached at the time `at`. Neither ever goes back.
    pub fn sample(&mut self, at: Duration, counts: Counts) {
        let Some((before, last)) = self.last.replace((at, counts)) else { return };
        let seconds = at.saturating_sub(before).as_secs_f64();
        let data = counts.data.saturating_sub(last.data);
        let is_hole = data == 0 && counts.done > last.done;
        if !is_hole {
            let weight = (-seconds / MEMORY).exp();
            self.data = self.data * weight + data as f64;
            self.seconds = self.seconds * weight + seconds;
        }
    }

    /// Bytes of data in a second.
    pub fn rate(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.data / self.seconds)
    }

    /// Returns the estimated time for `data` bytes, or `None` if it is too soon to tell.
    pub fn time_for(&self, data: u64) -> Option<Duration> {
        if data == 0 {
            return Some(Duration::ZERO);
        }
        let rate = self.rate().filter(|_| self.seconds >= SETTLED)?;
        let left = Duration::try_from_secs_f64(data as f64 / rate).ok();
        left.filter(|left| *left < MAX_LEFT)
    }
}

impl Amount {
    /// The data left after `counts`, which took `elapsed`; `None` as long as it is too soon to tell.
    pub fn left(&self, counts: Counts, elapsed: Duration) -> Option<u64> {
        let rest = self.total.saturating_sub(counts.done);
        let unread = self.stored.and_then(|stored| stored.checked_sub(counts.read));
        if let Some(unread) = unread.filter(|_| counts.read > 0) {
            return Some(rest.min(scaled(unread, counts.data, counts.read)));
        }
        let is_settled = counts.done >= self.total / 10 || elapsed >= A_WHILE;
        (is_settled && counts.done > 0).then(|| scaled(rest, counts.data, counts.done))
    }
}

/// `value * numerator / denominator`
fn scaled(value: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(numerator) / u128::from(denominator);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Seconds after which a sample counts a third.
const MEMORY: f64 = 5.0;

/// Seconds of work that tell how long the rest takes.
const SETTLED: f64 = 0.5;

/// Work that tells how much data there is, however little of the content it was.
const A_WHILE: Duration = Duration::from_secs(10);

/// A longer time is no estimate.
const MAX_LEFT: Duration = Duration::from_secs(365 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const TIB: u64 = 1 << 40;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// All that is known after each tenth of a second: of an image of `total` bytes that begins with
    /// `data` bytes of data and a GiB of data takes a second.
    fn estimates(total: u64, data: u64, stored: Option<u64>) -> Vec<(f64, Option<f64>)> {
        let amount = Amount { total, stored };
        let mut pace = Pace::default();
        let mut estimates = Vec::new();
        for tenth in 0..=(data * 10 / GIB) {
            let (at, data) = (seconds(tenth as f64 / 10.0), tenth * GIB / 10);
            let counts = Counts { done: data, data, read: data };
            pace.sample(at, counts);
            let left = amount.left(counts, at).and_then(|left| pace.time_for(left));
            estimates.push((at.as_secs_f64(), left.map(|left| left.as_secs_f64())));
        }
        estimates
    }

    #[test]
    fn what_is_stored_says_how_long_it_takes() {
        let estimates = estimates(8 * TIB, 5 * GIB, Some(5 * GIB));
        assert_eq!(estimates[2].1, None);
        for (at, left) in &estimates[6..] {
            assert!((left.unwrap() - (5.0 - at)).abs() < 0.2, "{at}: {left:?}");
        }
    }

    #[test]
    fn little_work_does_not_promise_hours() {
        assert!(estimates(8 * TIB, GIB, None).iter().all(|(_, left)| left.is_none()));
        // Without holes it is known at a tenth.
        let estimates = estimates(20 * GIB, 20 * GIB, None);
        assert_eq!(estimates[19].1, None);
        for (at, left) in &estimates[20..] {
            assert!((left.unwrap() - (20.0 - at)).abs() < 0.2, "{at}: {left:?}");
        }
    }

    #[test]
    fn holes_take_no_time() {
        let mut pace = Pace::default();
        pace.sample(seconds(0.0), Counts::default());
        pace.sample(seconds(1.0), Counts { done: GIB, data: GIB, read: GIB });
        pace.sample(seconds(9.0), Counts { done: TIB, data: GIB, read: GIB });
        assert_eq!(pace.rate(), Some(GIB as f64));
        // Waiting does.
        pace.sample(seconds(10.0), Counts { done: TIB, data: GIB, read: GIB });
        assert!(pace.rate().unwrap() < 0.5 * GIB as f64);
        assert_eq!(pace.time_for(u64::MAX), None);
    }

    #[test]
    fn compressed_data_is_more_than_is_stored() {
        let amount = Amount { total: 100 * GIB, stored: Some(20 * GIB) };
        let counts = Counts { done: 30 * GIB, data: 15 * GIB, read: 5 * GIB };
        assert_eq!(amount.left(counts, seconds(1.0)), Some(45 * GIB));
        // More was read than is stored: the rest may be as what has passed.
        let counts = Counts { read: 21 * GIB, ..counts };
        assert_eq!(amount.left(counts, seconds(1.0)), Some(35 * GIB));
        // It is never more than the content left, and nothing overflows.
        let counts = Counts { done: 99 * GIB, data: u64::MAX, read: 1 };
        assert_eq!(amount.left(counts, seconds(1.0)), Some(GIB));
        assert_eq!(amount.left(Counts::default(), seconds(99.0)), None);
    }
}
