//! Options of a verification.

use std::num::NonZero;
use std::thread;

/// Options of a verification.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of threads that read and hash.
    pub threads: usize,
    /// Maximum number of files or trees named for one block.
    pub max_owners: usize,
    /// Maximum number of findings passed to the observer. All are counted.
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
