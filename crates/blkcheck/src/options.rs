//! Options of a check, and what watches it.

use std::num::NonZero;
use std::ops::ControlFlow;
use std::thread;

use crate::place::Place;

/// Options of a check.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Number of threads that read and hash, where more than one is used.
    pub threads: usize,
    /// Maximum number of paths of one finding.
    pub max_paths: usize,
    /// Maximum number of findings that are passed to the sink. All are counted.
    pub max_findings: Option<u64>,
}

impl Options {
    /// Returns these options with another number of threads.
    #[must_use]
    pub const fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Returns these options with another maximum number of paths of one finding.
    #[must_use]
    pub const fn with_max_paths(self, max_paths: usize) -> Self {
        Self { max_paths, ..self }
    }

    /// Returns these options with another maximum number of findings that are passed to the sink.
    #[must_use]
    pub const fn with_max_findings(self, max_findings: Option<u64>) -> Self {
        Self { max_findings, ..self }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: thread::available_parallelism().map_or(1, NonZero::get),
            max_paths: 16,
            max_findings: None,
        }
    }
}

/// Progress of a check.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Place of the layer.
    pub place: &'a Place,
    /// Kind of the layer.
    pub kind: &'static str,
    /// Bytes that were read since the last call.
    pub bytes: u64,
    /// Bytes of this layer that are read altogether, if known.
    pub total: Option<u64>,
}

/// Watches a check. Called from any thread. `Break` cancels the check.
pub type Watch<'a> = dyn Fn(&Progress<'_>) -> ControlFlow<()> + Sync + 'a;
