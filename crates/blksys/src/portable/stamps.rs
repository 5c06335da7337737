//! The clock of time stamps.

use std::time::{Duration, SystemTime};

/// Returns the time that a change gets at least from now on, in nanoseconds since 1970. Which clock a file system stamps with is
/// unknown: it may be the clock of the last tick.
pub fn stamp_clock() -> i128 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(TICK).as_nanos() as i128
}

/// Longer than a tick of any kernel, which has at least 100 in a second.
const TICK: Duration = Duration::from_millis(20);
