//! How much is asked for at a time.
//!
//! A link is full when as many bytes are on their way as it carries in the time from a request to its answer. Neither is known, so
//! the window doubles while readers wait and the rate rises by it. A window that is of no use is taken back, and tried again later.

use std::mem;
use std::time::{Duration, Instant};

/// The number and size of requests in flight.
#[derive(Debug)]
pub(crate) struct Window {
    requests: usize,
    size: u64,
    epoch: Epoch,
    /// The window before the current one, which is on trial.
    tried: Option<Tried>,
    /// Whether the current epoch began with a change, so part of it is from before.
    is_settling: bool,
    /// Number of epochs until the next try, after one that was of no use.
    rest: u32,
    latency: Duration,
    /// Bytes a second of one connection.
    speed: f64,
}

/// A window and its rate in bytes a second.
#[derive(Debug)]
struct Tried {
    requests: usize,
    size: u64,
    rate: f64,
}

/// The time in which a full window arrives.
#[derive(Debug)]
struct Epoch {
    start: Instant,
    bytes: u64,
    /// Whether a reader had to wait.
    is_starved: bool,
}

impl Window {
    pub fn new(now: Instant) -> Self {
        Self {
            requests: 8,
            size: MIN_SIZE,
            epoch: Epoch::new(now),
            tried: None,
            is_settling: true,
            rest: 0,
            latency: Duration::ZERO,
            speed: 0.0,
        }
    }

    /// Returns the maximum number of requests in flight.
    pub fn requests(&self) -> usize {
        self.requests
    }

    /// Returns the size of a request.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the maximum number of bytes that are on their way or wait to be read: twice the window, so that it stays full while what
    /// has arrived is read.
    pub fn limit(&self) -> u64 {
        (self.bytes() * 2).clamp(MIN_LIMIT, MAX_LIMIT)
    }

    /// Returns the number of unwanted bytes that cost as much as another request.
    pub fn gap(&self) -> u64 {
        ((self.latency.as_secs_f64() * self.speed) as u64).clamp(MIN_GAP, MAX_GAP)
    }

    /// Notes that a reader has to wait for bytes on their way.
    pub fn starve(&mut self) {
        self.epoch.is_starved = true;
    }

    /// Notes how long one request took to its first byte, and in all.
    pub fn finished(&mut self, bytes: u64, latency: Duration, whole: Duration) {
        let speed = bytes as f64 / whole.saturating_sub(latency).as_secs_f64().max(1e-6);
        if self.latency.is_zero() {
            (self.latency, self.speed) = (latency, speed);
        } else {
            self.latency = self.latency.mul_f64(0.75) + latency.mul_f64(0.25);
            self.speed = self.speed * 0.75 + speed * 0.25;
        }
    }

    /// Notes bytes that arrived.
    pub fn received(&mut self, bytes: u64, now: Instant) {
        self.epoch.bytes += bytes;
        if self.epoch.bytes < self.bytes() {
            return;
        }
        let time = now.saturating_duration_since(self.epoch.start).as_secs_f64().max(1e-6);
        let rate = self.epoch.bytes as f64 / time;
        let is_starved = self.epoch.is_starved;
        self.epoch = Epoch::new(now);
        if mem::take(&mut self.is_settling) || !is_starved {
            return;
        }
        match self.tried.take() {
            Some(before) if rate < before.rate * RISE => {
                (self.requests, self.size) = (before.requests, before.size);
                self.rest = REST;
                self.is_settling = true;
            }
            None if self.rest > 0 => self.rest -= 1,
            _ => self.grow(rate),
        }
    }

    /// Halves the number of requests, because the server says that it is busy.
    pub fn relent(&mut self, now: Instant) {
        self.requests = (self.requests / 2).max(1);
        self.tried = None;
        self.rest = REST;
        self.epoch = Epoch::new(now);
        self.is_settling = true;
    }

    fn bytes(&self) -> u64 {
        self.size * self.requests as u64
    }

    /// Tries a larger window.
    fn grow(&mut self, rate: f64) {
        if self.bytes() >= MAX_LIMIT {
            self.rest = REST;
            return;
        }
        self.tried = Some(Tried { requests: self.requests, size: self.size, rate });
        let wants_size =
            self.size < MAX_SIZE && self.requests as u64 >= 16 * (self.size / MIN_SIZE);
        if self.requests < MAX_REQUESTS && !wants_size {
            self.requests *= 2;
        } else {
            self.size *= 2;
        }
        self.is_settling = true;
    }
}

impl Epoch {
    fn new(start: Instant) -> Self {
        Self { start, bytes: 0, is_starved: false }
    }
}

/// Maximum number of announced requests in flight.
const MAX_REQUESTS: usize = 64;

/// Size of the first requests.
const MIN_SIZE: u64 = 1 << 20;

/// Maximum size of a request.
/// Limit in bytes.
const MAX_SIZE: u64 = 8 << 20;

/// Smallest limit of bytes that are on their way or wait to be read.
const MIN_LIMIT: u64 = 16 << 20;

/// Maximum number of bytes of one object that are on their way or wait to be read.
/// Limit in bytes.
const MAX_LIMIT: u64 = 256 << 20;

/// Smallest number of unwanted bytes that cost less than a request.
const MIN_GAP: u64 = 64 << 10;

/// Largest number of unwanted bytes that cost less than a request.
const MAX_GAP: u64 = 512 << 10;

/// Factor by which the rate has to rise for a change to be worth it.
const RISE: f64 = 1.1;

/// Number of epochs after a change that was of no use.
const REST: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a window over a link with a capacity in bytes a second and a latency, and returns it.
    fn run(capacity: f64, latency: f64, starved: bool) -> Window {
        let mut now = Instant::now();
        let mut window = Window::new(now);
        for _ in 0..2000 {
            let bytes = window.bytes();
            let rate = capacity.min(bytes as f64 / latency);
            if starved {
                window.starve();
            }
            now += Duration::from_secs_f64(MIN_SIZE as f64 / rate);
            window.received(MIN_SIZE, now);
        }
        window
    }

    #[test]
    fn a_short_link_needs_no_more() {
        let window = run(1e8, 0.001, true);
        assert!(window.bytes() <= 16 << 20, "{window:?}");
    }

    #[test]
    fn a_long_link_gets_what_it_carries() {
        let window = run(1.25e9, 0.1, true);
        assert!(window.bytes() as f64 >= 1.25e8, "{window:?}");
        let window = run(1e12, 10.0, true);
        assert_eq!((window.requests(), window.size(), window.limit()), (64, 4 << 20, MAX_LIMIT));
    }

    #[test]
    fn nothing_grows_while_readers_are_slower() {
        let window = run(1.25e9, 0.1, false);
        assert_eq!((window.requests(), window.size(), window.limit()), (8, 1 << 20, 16 << 20));
    }

    #[test]
    fn a_busy_server_gets_fewer_requests() {
        let now = Instant::now();
        let mut window = Window::new(now);
        for requests in [4, 2, 1, 1] {
            window.relent(now);
            assert_eq!(window.requests(), requests);
        }
    }

    #[test]
    fn gaps_cost_what_requests_cost() {
        let mut window = Window::new(Instant::now());
        assert_eq!(window.gap(), 64 << 10);
        window.finished(1 << 20, Duration::from_millis(10), Duration::from_millis(60));
        assert_eq!(window.gap() / 1000, 209);
        for _ in 0..100 {
            window.finished(1 << 20, Duration::from_millis(100), Duration::from_millis(110));
        }
        assert_eq!(window.gap(), MAX_GAP);
    }
}
