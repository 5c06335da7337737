//! When a request is sent again.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

/// The attempts in a row that made no progress.
#[derive(Debug)]
pub(crate) struct Backoff {
    limit: u32,
    failed: u32,
}

impl Backoff {
    /// Allows a number of attempts after the first one.
    pub fn new(limit: u32) -> Self {
        Self { limit, failed: 0 }
    }

    /// Starts to count anew, because bytes arrived.
    pub fn progress(&mut self) {
        self.failed = 0;
    }

    /// Returns the number of attempts that failed since the last progress.
    pub fn failed(&self) -> u32 {
        self.failed
    }

    /// Counts a failure and returns the time to wait, at least the number of seconds that the server asked for. `None` if there were
    /// enough attempts, or the server asked for too long.
    pub fn next(&mut self, asked: Option<u64>) -> Option<Duration> {
        self.failed = self.failed.saturating_add(1);
        if self.failed > self.limit || asked.is_some_and(is_too_long) {
            return None;
        }
        let most = FIRST.saturating_mul(1 << (self.failed - 1).min(16)).min(LAST);
        // Clients that failed together should not come back together.
        let wait = most.mul_f64(0.5 + 0.5 * fastrand::f64());
        let asked = asked.map(Duration::from_secs);
        Some(wait.max(asked.unwrap_or_default()))
    }

    /// Returns whether a status says that the same request may succeed later.
    pub fn is_temporary(status: StatusCode) -> bool {
        matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
    }

    /// Returns the number of seconds that a server asks to wait.
    pub fn wait_of(headers: &HeaderMap) -> Option<u64> {
        headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
    }
}

/// Returns whether a server asks to wait longer than anyone does at a terminal.
pub(crate) fn is_too_long(seconds: u64) -> bool {
    seconds > MAX_ASKED.as_secs()
}

/// Maximum wait after the first failure. It doubles with each.
const FIRST: Duration = Duration::from_millis(100);

/// Maximum wait that the client chooses.
const LAST: Duration = Duration::from_secs(10);

/// Maximum wait that a server may ask for. The client gives up if it asks for more.
/// Limit in time.
const MAX_ASKED: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_until_the_limit() {
        let mut backoff = Backoff::new(8);
        for most in [100, 200, 400, 800, 1600, 3200, 6400, 10_000] {
            let wait = backoff.next(None).unwrap();
            let most = Duration::from_millis(most);
            assert!(wait >= most / 2 && wait <= most, "{wait:?} of {most:?}");
        }
        assert_eq!(backoff.next(None), None);
        backoff.progress();
        assert!(backoff.next(None).unwrap() <= FIRST);
    }

    #[test]
    fn servers_may_ask_for_at_most_a_minute() {
        let mut backoff = Backoff::new(8);
        assert_eq!(backoff.next(Some(7)), Some(Duration::from_secs(7)));
        assert_eq!(backoff.next(Some(60)), Some(MAX_ASKED));
        assert_eq!(backoff.next(Some(61)), None);
        assert_eq!(backoff.next(Some(u64::MAX)), None);
        assert!(backoff.next(Some(0)).unwrap() >= Duration::from_millis(200));
    }

    #[test]
    fn dates_are_no_seconds() {
        let with = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            Backoff::wait_of(&headers)
        };
        assert_eq!(with(" 12 "), Some(12));
        assert_eq!(with("-1"), None);
        assert_eq!(with("Fri, 31 Dec 1999 23:59:59 GMT"), None);
        assert_eq!(Backoff::wait_of(&HeaderMap::new()), None);
    }
}
