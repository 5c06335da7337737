//! The processors of this process.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Returns the processors that this process may use.
pub fn allowed_cores() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect(),
        Err(_) => Vec::new(),
    }
}

/// Pins the current thread to a processor. Returns false if this fails.
pub fn pin_to_core(cpu: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).is_ok()
}
