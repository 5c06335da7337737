//! `blkhash.diff()`: where two images differ, without maps.

use std::ffi::OsString;

use blksum::{Progress, Tuning};
use pyo3::prelude::*;

use crate::arguments;
use crate::differences::{Asked, Differences};
use crate::errors::Failure;
use crate::input::Input;
use crate::job::Watch;
use crate::open::Opened;

/// Compares the content of two images, and returns where it differs.
///
/// Args:
///     left: what the image should be, an `Image` or the name of one.
///     right: the image, likewise.
///     block_size: bytes that are compared at a time, a power of two from 512 to 64 MiB.
///     ignore_tail: leave out what the right image, which must be a whole one, has past the end of the left one, as a card that
///         is larger.
///     ignore_free: leave out blocks that the file systems of the right image, or else of the left one, call free.
///     owners: find out what the blocks are used for, and the files that they belong to.
///     limit: largest number of differences, so that an image cannot use all memory.
///     threads: number of threads, by default one per processor.
///     progress: called a few times a second with the bytes compared and their total.
///     cancel: an object like `threading.Event`, which ends the work once it is set.
///
/// Returns:
///     A `Differences`, which is a list of `Difference`, in order, empty if the images are equal. With `ignore_free` or
///     `owners` it says what the blocks are used for, if an image has a file system that is read.
///
/// Both are read at most once. What both have from one place in a file, such as a common backing
/// file, and zeros that
/// nothing stores are not read.
///
/// Raises:
///     ImageError: an image cannot be opened or read, or changed meanwhile (`ChangedError`).
///     CancelledError: `cancel` was set.
///     ValueError: an argument is invalid, or there are more than `limit` differences, or `ignore_tail` would leave
///         nothing.
///
/// >>> blkhash.diff("disk.qcow2", "damaged.img")
/// [Difference(offset=1966080, length=65536, kind='changed')]
#[pyfunction]
#[pyo3(signature = (left, right, *, block_size=65536, ignore_tail=false, ignore_free=false, owners=false, limit=262144, threads=None, progress=None, cancel=None))]
#[expect(clippy::too_many_arguments, reason = "as in Python")]
pub fn diff<'py>(
    py: Python<'py>,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    block_size: u64,
    ignore_tail: bool,
    ignore_free: bool,
    owners: bool,
    limit: usize,
    threads: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
    cancel: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let block_size = arguments::block_size(block_size)?;
    let tuning = arguments::tuning(threads, None)?;
    let (left, right) = (Input::new(left)?, Input::new(right)?);
    let asked = Asked { ignore_free, owners };
    let watch = Watch { progress, cancel };
    let differences = watch.run(py, move |progress| {
        left.with(|left| {
            right.with(|right| {
                let size = left.selected.size();
                let cut = ignore_tail.then(|| right.without_tail(size)).transpose()?;
                let right = cut.as_ref().unwrap_or(right);
                compare(left, right, (block_size, limit, asked), &tuning, progress)
            })
        })
    })?;
    differences.into_list(py)
}

fn compare(
    left: &Opened,
    right: &Opened,
    (block_size, limit, asked): (blkhash::BlockSize, usize, Asked),
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Differences, Failure> {
    // The newer state is the one to look at, unless only the older one has a file system.
    let mut found = Differences::new(limit).with_uses(&[right, left], block_size, asked);
    let mut push = |difference| found.push(difference);
    let (left, right) = (left.content(), right.content());
    blksum::differences(left, right, block_size, &mut push, tuning, progress)
        .map_err(|error| Failure::Pass(error, OsString::new()))?;
    Ok(found.finish()?)
}
