//! Cycles from perf_event_open(2).

use perf_event::{Builder, Counter, events::Hardware};

/// Counts the core's cycles in user mode on the thread that created it.
pub struct CoreCycles {
    counter: Counter,
}

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
fn reason(what: &str, error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    format!("{what}: {text}")
}
