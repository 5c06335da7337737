//! Core cycles, which follow the clock rate of the core, unlike the time stamp counter. They come
//! from the kernel, if the machine and its administrator allow it.

#[cfg_attr(
    not(all(
        target_os = "linux",
        any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "x86_64")
    )),
    path = "none.rs"
)]
mod perf;

pub use perf::CoreCycles;

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
