//! Cycles of the core, which unlike the time stamp counter stand still when the clock does and race
//! when it races. They come from the kernel, where the machine and its owner allow it.

#[cfg(target_os = "linux")]
use perf_event::{Builder, Counter, events::Hardware};

/// Counts the core's cycles in user mode on the thread that made it.
pub struct CoreCycles {
    #[cfg(target_os = "linux")]
    counter: Counter,
}

#[cfg(target_os = "linux")]
impl CoreCycles {
    /// A counter that runs; the error says why there is none.
    pub fn start() -> Result<Self, String> {
        let counter =
            Builder::new(Hardware::CPU_CYCLES).exclude_kernel(true).exclude_hv(true).build();
        let mut counter = counter.map_err(|error| reason("perf_event_open", &error))?;
        counter.enable().map_err(|error| reason("perf events", &error))?;
        Ok(Self { counter })
    }

    /// Cycles so far; `None` if the counter cannot be read.
    pub fn read(&mut self) -> Option<u64> {
        self.counter.read().ok()
    }
}

/// What the system says, without the number of the error.
#[cfg(target_os = "linux")]
fn reason(what: &str, error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    format!("{what}: {text}")
}

#[cfg(not(target_os = "linux"))]
impl CoreCycles {
    /// There is none.
    pub fn start() -> Result<Self, String> {
        Err("only Linux has perf events".to_owned())
    }

    /// Never called.
    pub fn read(&mut self) -> Option<u64> {
        None
    }
}

/// Why there are no core cycles here; `None` if there are.
///
/// Virtual machines without a performance monitoring unit may hand out a counter that never moves.
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
