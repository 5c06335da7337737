//! Options of a verification, and what watches it.

use std::num::NonZero;
use std::ops::ControlFlow;
use std::thread;

/// Watches a verification. Called from any thread with the number of bytes verified since the last call, out of
/// [`FileSystem::verified_bytes`](crate::FileSystem::verified_bytes), which count every mirror, and rows with parities
/// once more. `Break` cancels the verification.
pub type Watch<'a> = dyn Fn(u64) -> ControlFlow<()> + Sync + 'a;

/// Options of a verification.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Number of threads that read and hash.
    pub threads: usize,
    /// Maximum number of files or trees named for one block.
    pub max_owners: usize,
    /// Maximum number of findings passed to the observer. All are counted.
    pub max_findings: Option<u64>,
}

impl Options {
    /// Returns these options with another number of threads.
    #[must_use]
    pub const fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Returns these options with another maximum number of files or trees named for one block.
    #[must_use]
    pub const fn with_max_owners(self, max_owners: usize) -> Self {
        Self { max_owners, ..self }
    }

    /// Returns these options with another maximum number of findings passed to the observer.
    #[must_use]
    pub const fn with_max_findings(self, max_findings: Option<u64>) -> Self {
        Self { max_findings, ..self }
    }
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
