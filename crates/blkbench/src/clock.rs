//! Points in time: the clock of the system, and the finest that the CPU has.

use std::time::{Duration, Instant};

/// What ticks are, for people.
pub const TICKS: &str =
    if cfg!(target_arch = "x86_64") { "cycles of the time stamp counter" } else { "nanoseconds" };

/// Ticks in short, for the heads of columns.
pub const SHORT_TICKS: &str = if cfg!(target_arch = "x86_64") { "Cycles" } else { "ns" };

/// When something began.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    time: Instant,
    ticks: u64,
}

/// How long something took.
#[derive(Clone, Copy, Debug)]
pub struct Elapsed {
    /// On the clock of the system.
    pub time: Duration,
    /// In [`TICKS`].
    pub ticks: u64,
}

impl Start {
    /// Now. The ticks are read last, so that they hold as little else as possible.
    pub fn now() -> Self {
        let time = Instant::now();
        Self { time, ticks: ticks(time) }
    }

    /// Since then.
    pub fn elapsed(self) -> Elapsed {
        let end = ticks(self.time);
        Elapsed { ticks: end.wrapping_sub(self.ticks), time: self.time.elapsed() }
    }
}

/// The time stamp counter, once everything before has been executed and before anything after is.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn ticks(_since: Instant) -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: lfence is part of SSE2 and rdtsc older: every x86_64 has both. Neither touches memory.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

/// Nanoseconds since `since`, which is when the measurement began.
#[cfg(not(target_arch = "x86_64"))]
fn ticks(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}
