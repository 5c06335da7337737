//! `blkhash.owners()`: which file or structure the bytes of an image belong to.

use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use blkfs::{Contents, Span};
use blkimage::Source;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::errors::Failure;
use crate::input::Input;
use crate::job::Watch;
use crate::open::Opened;
use crate::types;

/// Returns which file or structure the bytes of an image belong to, as `blkhash owners` does.
///
/// Args:
///     image: an `Image` or the name of one.
///     offset: offset of the first byte in the content.
///     length: number of bytes, by default up to the end.
///     limit: largest number of extents, so that an image cannot use all memory.
///     partition: number of a partition, which is then the content.
#[doc = include_str!("options.txt")]
///
/// Returns:
///     An `Owners` with `extents`, a list of `Owned` by offset, and `remarks`. Bytes that several
///     files share are in one extent for each. Of btrfs, at most 1 GiB of data is looked up. A
///     journal that was not replayed is a remark: for ext4 the owners are those after its replay.
///
/// Raises:
///     ImageError: the image cannot be opened, changed meanwhile (`ChangedError`), or has no file
///         system that is read.
///     ValueError, TypeError: an argument is invalid, or there are more than `limit` extents.
///         Options for opening are for names: an `Image` has its own.
///
/// >>> sorted({name for it in blkhash.owners("btrfs.qcow2").extents for name in it.names})
/// ['home/user/mail/archive']
#[pyfunction]
#[pyo3(signature = (image, offset=0, length=None, *, limit=262144, **options))]
pub fn owners<'py>(
    py: Python<'py>,
    image: &Bound<'py, PyAny>,
    offset: u64,
    length: Option<u64>,
    limit: usize,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let input = Input::with_options(image, options)?;
    let end = length.map_or(u64::MAX, |length| offset.saturating_add(length));
    let found = Watch::NONE
        .run(py, move |_| input.with(|opened| Owners::of(opened, offset..end, limit)))?;
    found.into_object(py)
}

/// The owners of a range.
struct Owners {
    extents: Vec<Span>,
    limit: usize,
    is_beyond_limit: bool,
    /// With the number of the partition.
    remarks: Vec<(Option<u32>, String)>,
}

impl Owners {
    fn of(opened: &Opened, range: Range<u64>, limit: usize) -> Result<Self, Failure> {
        let disk: Arc<dyn Source> = Arc::new(opened.selected.source().clone());
        let contents = Contents::of(&disk);
        if !contents.has_files() {
            disk.check_unchanged()?;
            return Err(Failure::NoFiles(opened.name.clone()));
        }
        let mut owners =
            Self { extents: Vec::new(), limit, is_beyond_limit: false, remarks: Vec::new() };
        let range = range.start..range.end.min(disk.size());
        contents.spans(range, &mut |span| owners.push(span));
        owners.remarks = contents.remarks();
        // The bytes of the file systems were read, and may have changed since.
        disk.check_unchanged()?;
        Ok(owners)
    }

    fn push(&mut self, span: &Span) {
        match self.extents.len() < self.limit {
            true => self.extents.push(span.clone()),
            false => self.is_beyond_limit = true,
        }
    }

    /// Returns the object for Python. More extents than the limit are an error, because a part of them looks like all.
    fn into_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        if self.is_beyond_limit {
            let limit = self.limit;
            let reason = format!("there are more than {limit} extents: limit=N returns up to N");
            return Err(PyValueError::new_err(reason));
        }
        let extents = self.extents.iter().map(|span| extent(py, span));
        let extents = extents.collect::<PyResult<Vec<_>>>()?;
        types::OWNERS.make(py, (extents, PyTuple::new(py, self.remarks)?))
    }
}

fn extent<'py>(py: Python<'py>, span: &Span) -> PyResult<Bound<'py, PyAny>> {
    let Span { offset, length, partition, file_system, holder, .. } = span;
    let names = PyTuple::new(py, holder.paths.iter().map(|path| OsStr::from_bytes(path)))?;
    let fields = (
        *offset,
        *length,
        *partition,
        *file_system,
        holder.usage.name(),
        holder.structure,
        names,
        holder.object,
        holder.offset,
    );
    types::OWNED.make(py, fields)
}
