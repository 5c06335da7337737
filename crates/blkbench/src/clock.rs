//! Time on the clock of the system, and in the finest unit of the CPU.

use std::time::{Duration, Instant};

/// The unit of ticks, in words.
pub const TICKS: &str =
    if cfg!(target_arch = "x86_64") { "cycles of the time stamp counter" } else { "nanoseconds" };

/// The unit of ticks, for the heads of columns.
pub const SHORT_TICKS: &str = if cfg!(target_arch = "x86_64") { "Cycles" } else { "ns" };

/// A start time.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    time: Instant,
    ticks: u64,
}

/// A duration.
#[derive(Clone, Copy, Debug)]
pub struct Elapsed {
    /// The duration on the clock of the system.
    pub time: Duration,
    /// The duration in [`TICKS`].
    pub ticks: u64,
}

impl Start {
    /// Returns the current time. Reads the ticks last, to measure as little else as possible.
    pub fn now() -> Self {
        let time = Instant::now();
        Self { time, ticks: ticks(time) }
    }

    /// Returns the duration since the start.
    pub fn elapsed(self) -> Elapsed {
        let end = ticks(self.time);
        Elapsed { ticks: end.wrapping_sub(self.ticks), time: self.time.elapsed() }
    }
}

/// Reads the time stamp counter after all earlier instructions and before all later ones.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn ticks(_since: Instant) -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86_64 has lfence (SSE2) and rdtsc. Neither touches memory.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

/// Returns the nanoseconds since `since`, the start of the measurement.
#[cfg(not(target_arch = "x86_64"))]
fn ticks(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}
