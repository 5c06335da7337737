//! The number of processors.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread;

/// Returns the number of threads that this process can run at a time, at least 1, as it was at the first call.
pub fn processors() -> usize {
    *PROCESSORS
}

/// Finding the number takes reading several files.
static PROCESSORS: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));
