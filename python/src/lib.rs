//! The extension module of the Python package `blkhash`.
//!
//! It converts arguments, results and errors, and releases the GIL. Everything else is done by the crates of this
//! workspace. Classes and functions that need no Rust are in `python/blkhash/*.py`.
//!
//! A pass (`job.rs`) runs on a thread of its own. The thread of the caller waits without the GIL. Every 50 ms it takes the GIL, looks for
//! signals and at `cancel`, and calls `progress`. An exception cancels the pass. If the thread does not end within a
//! second, it remains. The thread of the caller removes new files even then (`unfinished.rs`), and the other one does not change the
//! destination of a copy later (`destination.rs`).
//!
//! What has threads, locks or connections cannot be used or dropped in a forked child, so it is `Owned`. An image that
//! `qemu-nbd` serves lives as long as the thread that opened it, which is kept with it. The iterator over a map reads some runs at a
//! time, because it cannot borrow the map.

#![allow(
    clippy::doc_lazy_continuation,
    reason = "comments of exported items are docstrings of Python"
)]

mod arguments;
mod btrfs;
mod buffer;
mod check;
mod checksum;
mod copied;
mod copy;
mod copying;
mod delta;
mod destination;
mod diff;
mod differences;
mod errors;
mod hasher;
mod image;
mod index;
mod input;
mod job;
mod lent;
mod map;
mod map_runs;
mod new_map;
mod open;
mod open_map;
mod owners;
mod process;
mod sums;
mod types;
mod unfinished;
mod update;

/// The functions and classes that `blkhash/__init__.py` passes on.
#[pyo3::pymodule(name = "_blkhash")]
mod module {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::btrfs::btrfs_verify;
    #[pymodule_export]
    use super::check::check;
    #[pymodule_export]
    use super::checksum::checksum;
    #[pymodule_export]
    use super::copy::copy;
    #[pymodule_export]
    use super::delta::{apply_delta, send_delta};
    #[pymodule_export]
    use super::diff::diff;
    #[pymodule_export]
    use super::hasher::{Hash, algorithms_available, new};
    #[pymodule_export]
    use super::image::Image;
    #[pymodule_export]
    use super::index::import_map;
    #[pymodule_export]
    use super::map::Map;
    #[pymodule_export]
    use super::new_map::create_map;
    #[pymodule_export]
    use super::owners::owners;
    #[pymodule_export]
    use super::process::forked;
    #[pymodule_export]
    use super::sums::{read_sums, sum_line, verify_sums};
    #[pymodule_export]
    use super::update::update_map;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
