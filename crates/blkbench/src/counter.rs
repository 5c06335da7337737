//! Core cycles, which follow the clock rate of the core, unlike the time stamp counter. They come
//! from the kernel, if the machine and its administrator allow it.

#[cfg(target_os = "linux")]
use perf_event::{Builder, Counter, events::Hardware};

/// Counts the core's cycles in user mode on the thread that created it.
pub struct CoreCycles {
    #[cfg(target_os = "linux")]
    counter: Counter,
}

#[cfg(target_os = "linux")]
impl CoreCycles {
    /// Creates a running counter.
    ///
    /// # Errors
    ///
    /// Returns the reason if it is unavailable.
    pub fn start() -> Result<Self, String> {
        let counter =
            Builder::new(Hardware::CPU_CYCLES).exclude_kernel(true).exclude_hv(true).build();
        let mut counter = counter.map_err(|error| reason("perf_event_open", &error))?;
        counter.enable().map_err(|error| reason("perf events", &error))?;
        Ok(Self { counter })
    }

    /// Returns the cycles so far, or `None` if the counter cannot be read.
    pub fn read(&mut self) -> Option<u64> {
        self.counter.read().ok()
    }
}

/// Returns the system's error message without the error number.
#[cfg(target_os = "linux")]
fn reason(what: &str, error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    format!("{what}: {text}")
}

#[cfg(not(target_os = "linux"))]
impl CoreCycles {
    /// Always fails.
    pub fn start() -> Result<Self, String> {
        Err("only Linux has perf events".to_owned())
    }

    /// Never called, because no counter can be created.
    pub fn read(&mut self) -> Option<u64> {
        None
    }
}

/// Returns the reason that core cycles are unavailable, or `None` if they are available.
///
/// A virtual machine without a performance monitoring unit may have a counter that never moves.
pub fn missing() -> Option<String> {
    let mut counter = match CoreCycles::start() {
        Ok(counter) => counter,
        Err(reason) => return Some(reason),
    };
    let before = counter.read();
    let sum = (0..10_000u64).fold(0, |sum, i| std::hint::black_box(sum ^ i));
    std::hint::black_box(sum);
    match (before, counter.read()) {
        (Some(before), Some(after)) if after > before => None,
        _ => Some("the counter does not move".to_owned()),
    }
}
