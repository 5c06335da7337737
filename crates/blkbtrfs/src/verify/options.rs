//! How to verify.

use std::num::NonZero;
use std::thread;

/// How to verify.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Threads that read and hash.
    pub threads: usize,
    /// Files that are named for one block at most.
    pub max_owners: usize,
    /// Findings that the observer is told of at most. All are counted.
    pub max_findings: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: thread::available_parallelism().map_or(1, NonZero::get),
            max_owners: 16,
            max_findings: None,
        }
    }
}
