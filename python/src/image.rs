//! `blkhash.Image`: an image as its guest sees it.

use std::sync::{Arc, Mutex, PoisonError};

use blkimage::partition;
use blkimage::{ExtentKind, Source, Warning};
use blksum::changes::Changes;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::arguments::{self, cannot_pickle};
use crate::buffer::Buffer;
use crate::checksum::{Job, Wanted};
use crate::errors::{self, Failure};
use crate::job::Watch;
use crate::open::{Opened, Request};
use crate::process::Owned;
use crate::types;

/// An open image as its guest sees it, read only, or a part of it.
///
/// Args:
///     name: path of an image, or as `str` also the URI of an NBD server. A `pathlib.Path` is
///         always a path.
///     offset: first byte of the image that belongs to the content.
///     length: number of bytes of the content, by default up to the end of the image.
///     partition: number of a partition, which is then the content.
#[doc = include_str!("options.txt")]
///
/// Raises:
///     ImageError: the image cannot be opened. It is also an `OSError` if the system failed.
///     ValueError, TypeError: an argument is invalid, or the image has no such partition or range.
///
/// Offsets and lengths are in bytes of the content. Threads may share an image. Processes may not,
/// and after `os.fork()` it
/// raises `ForkError` in the child. It can be used in a `with` statement, which closes it.
///
/// >>> with blkhash.Image("overlay.qcow2") as image:
/// ...     image.format, image.size
/// ('qcow2', 8388608)
#[pyclass(frozen, module = "blkhash")]
pub struct Image {
    /// `None` after it was closed. Locked only by threads that are attached to the interpreter, and
    /// not for longer
    /// than it takes to clone the pointer, so that it is not locked in a child.
    opened: Mutex<Option<Arc<Owned<Opened>>>>,
}

#[pymethods]
impl Image {
    #[new]
    #[pyo3(signature = (name, *, offset=0, length=None, **options))]
    fn new(
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        offset: u64,
        length: Option<u64>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let request = Request::of_range(name, (offset, length), options)?;
        let opened = Watch::NONE.run(py, |_| request.open_kept())?;
        Ok(Self { opened: Mutex::new(Some(Arc::new(Owned::new(opened)))) })
    }

    /// Size of the content in bytes.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |opened| Ok(opened.content().size()))
    }

    /// Offset of the content in the image, which is 0 for all of it.
    #[getter]
    fn offset(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |opened| Ok(opened.selected.offset()))
    }

    /// Format of the image itself, as in qemu-img.
    #[getter]
    fn format(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.with(py, |opened| Ok(opened.image().format().name()))
    }

    /// Name of the image, as it was opened.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.with(py, |opened| Ok(opened.name.as_os_str().into_pyobject(py)?.into_any()))
    }

    /// The snapshot that was asked for.
    #[getter]
    fn snapshot(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with(py, |opened| Ok(opened.snapshot.clone()))
    }

    /// The number of the partition that was asked for.
    #[getter]
    fn partition(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        self.with(py, |opened| Ok(opened.selected.partition()))
    }

    /// The image and its backing files, from the top.
    #[getter]
    fn chain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.with(py, |opened| {
            let members = opened.image().chain().iter().map(|member| {
                let files = member
                    .files()
                    .map(|file| types::FILE.make(py, (file.name().as_os_str(), file.size())));
                let files = PyTuple::new(py, files.collect::<PyResult<Vec<_>>>()?)?;
                types::MEMBER.make(py, (member.format().name(), member.virtual_size(), files))
            });
            PyTuple::new(py, members.collect::<PyResult<Vec<_>>>()?)
        })
    }

    /// Messages about an image that can be read, but may not be what it seems.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.with(py, |opened| {
            let warnings = opened.image().warnings().iter();
            let text = |warning: &Warning| format!("{warning}{}", errors::advice(warning.hint));
            PyTuple::new(py, warnings.map(text).collect::<Vec<_>>())
        })
    }

    /// The internal snapshots, as `Snapshot` tuples in the order of the image. Empty if its format
    /// has none.
    ///
    /// Raises `ImageError` if the list cannot be read.
    #[getter]
    fn snapshots<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let opened = self.opened()?;
        let opened = opened.get(py, "image")?;
        let found = py.detach(|| opened.image().snapshots());
        let found = found.map_err(|error| errors::of_image(py, &error))?.unwrap_or_default();
        let tuples = found.iter().map(|it| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let created = it.created.as_secs_f64();
            let fields = (text(&it.id), text(&it.name), created, it.virtual_size, it.vm_state_size);
            types::SNAPSHOT.make(py, fields)
        });
        PyTuple::new(py, tuples.collect::<PyResult<Vec<_>>>()?)
    }

    /// Returns what changed, as a list of offsets and lengths in bytes: the extents that a bitmap of changed blocks marks,
    /// or those that the image does not share on btrfs or XFS with an older image, of which it was a reflink copy or
    /// snapshot.
    ///
    /// Raises `ImageError` if there is no such bitmap, if it was not closed, or cannot be read, and `ValueError` if no file
    /// system has files of both images and tells which extents they share.
    #[pyo3(signature = (bitmap=None, *, reflink=None))]
    fn changes(
        &self,
        py: Python<'_>,
        bitmap: Option<&str>,
        reflink: Option<&Bound<'_, Self>>,
    ) -> PyResult<Vec<(u64, u64)>> {
        let opened = self.opened()?;
        let opened = opened.get(py, "image")?;
        let found = match (bitmap, reflink) {
            (Some(bitmap), None) => {
                let found = py.detach(|| Changes::of_bitmap(opened.image(), bitmap.as_bytes()));
                let found = found.map_err(|error| errors::of_image(py, &error))?;
                found.in_part(opened.selected.offset(), opened.selected.size())
            }
            (None, Some(older)) => {
                let older = older.get().opened()?;
                let older = older.get(py, "image")?;
                let found = py.detach(|| Changes::since(older.content(), opened.content()));
                found.map_err(|error| match error {
                    blksum::Error::NothingShared => {
                        PyValueError::new_err(format!("{}: {error}", opened.name.display()))
                    }
                    error => Failure::Pass(error, opened.name.clone()).into_err(py),
                })?
            }
            _ => return Err(PyTypeError::new_err("changes() takes one of bitmap and reflink")),
        };
        Ok(found.extents().iter().map(|it| (it.start, it.end - it.start)).collect())
    }

    /// Returns the partitions in the GPT or MBR of the content, as a list of `Partition`.
    ///
    /// Raises `ImageError` if the table cannot be read, and `ValueError` if it is damaged.
    fn partitions<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let opened = self.opened()?;
        let opened = opened.get(py, "image")?;
        let table =
            py.detach(|| partition::table(opened.content())).map_err(|error| match error {
                partition::TableError::Image(error) => errors::of_image(py, &error),
                error => PyValueError::new_err(error.to_string()),
            })?;
        let found = table.partitions.iter();
        found.map(|it| types::PARTITION.make(py, (it.number, it.offset, it.length))).collect()
    }

    /// Returns an iterator over the extents from `offset` on, at most `length` bytes. Each is an
    /// `Extent`, and adjacent ones have
    /// different kinds. Raises `ImageError` if tables of the image cannot be read.
    #[pyo3(signature = (offset=0, length=None))]
    fn extents(&self, py: Python<'_>, offset: u64, length: Option<u64>) -> PyResult<Extents> {
        let opened = self.opened()?;
        let size = opened.get(py, "image")?.content().size();
        let end = length.map_or(size, |length| offset.saturating_add(length).min(size));
        Ok(Extents { opened, rest: Mutex::new((offset, end)) })
    }

    /// Returns `length` bytes of the content from `offset` on, fewer at its end.
    ///
    /// Raises `ImageError` if they cannot be read.
    fn read<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        length: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let opened = self.opened()?;
        let opened = opened.get(py, "image")?;
        let length = length.min(opened.content().size().saturating_sub(offset));
        let length = usize::try_from(length).map_err(|_| PyValueError::new_err("is too long"))?;
        PyBytes::new_with(py, length, |bytes| read(py, opened, bytes, offset))
    }

    /// Fills a writable buffer with the content from `offset` on, without a copy. Returns the
    /// number of bytes, which is less at
    /// the end of the content. Raises `ImageError` if they cannot be read.
    #[pyo3(signature = (buffer, offset=0))]
    fn readinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>, offset: u64) -> PyResult<usize> {
        let opened = self.opened()?;
        let opened = opened.get(py, "image")?;
        let mut buffer = Buffer::writable(buffer)?;
        let bytes = buffer.bytes_mut();
        let left = opened.content().size().saturating_sub(offset);
        let length = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        read(py, opened, &mut bytes[..length], offset)?;
        Ok(length)
    }

    /// Raises `ChangedError` if the files of the image changed since it was opened, as far as that
    /// can be detected.
    fn check_unchanged(&self, py: Python<'_>) -> PyResult<()> {
        let opened = self.opened()?;
        let opened = opened.get(py, "image")?;
        py.detach(|| opened.image().check_unchanged()).map_err(|error| errors::of_image(py, &error))
    }

    /// Returns checksums of the content, in one pass, as `blkhash.checksum()` does, with the same
    /// arguments, result and errors.
    #[pyo3(
        signature = (digests=None, *, construction=None, block_size=None, salt=None, expect=None, threads=None, max_zeros=None, progress=None, cancel=None),
        text_signature = "($self, digests='sha256', *, construction='streams:4', block_size=None, salt=b'', expect=None, threads=None, max_zeros=None, progress=None, cancel=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "as in Python")]
    fn checksum<'py>(
        &self,
        py: Python<'py>,
        digests: Option<&Bound<'py, PyAny>>,
        construction: Option<&str>,
        block_size: Option<u64>,
        salt: Option<&Bound<'py, PyAny>>,
        expect: Option<&str>,
        threads: Option<usize>,
        max_zeros: Option<u64>,
        progress: Option<&Bound<'py, PyAny>>,
        cancel: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let wanted = Wanted::new(digests, construction, block_size, salt, expect, max_zeros)?;
        let job = Job { wanted, tuning: arguments::tuning(threads, max_zeros)? };
        let opened = self.opened()?;
        opened.get(py, "image")?;
        let watch = Watch { progress, cancel };
        watch.run(py, move |progress| job.run(opened.here()?, progress))?.into_result(py)
    }

    /// Returns an `ImageFile` with the content, an `io.RawIOBase`.
    fn open<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        types::IMAGE_FILE.make(slf.py(), (slf,))
    }

    /// Closes the image. Its iterators keep their files open until they end.
    fn close(&self) {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Whether the image is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let described = self.with(py, |opened| {
            let (name, format) = (&opened.name, opened.image().format());
            Ok(format!("<blkhash.Image {name:?} {format} {} bytes>", opened.content().size()))
        });
        described.unwrap_or_else(|_| "<blkhash.Image closed>".to_owned())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(cannot_pickle("blkhash.Image"))
    }
}

impl Image {
    /// Returns the open image.
    pub fn opened(&self) -> PyResult<Arc<Owned<Opened>>> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.clone().ok_or_else(|| PyValueError::new_err("the image is closed"))
    }

    fn with<R>(&self, py: Python<'_>, get: impl FnOnce(&Opened) -> PyResult<R>) -> PyResult<R> {
        get(self.opened()?.get(py, "image")?)
    }
}

/// Fills `bytes` with the content from `offset` on.
fn read(py: Python<'_>, opened: &Opened, bytes: &mut [u8], offset: u64) -> PyResult<()> {
    let mut offset = offset;
    for part in bytes.chunks_mut(PART) {
        py.detach(|| opened.content().read_exact_at(part, offset))
            .map_err(|error| errors::of_image(py, &error))?;
        offset += part.len() as u64;
        // Ctrl-C ends a long read.
        py.check_signals()?;
    }
    Ok(())
}

/// An iterator over extents.
#[pyclass(frozen, module = "blkhash._blkhash", name = "_Extents")]
pub struct Extents {
    opened: Arc<Owned<Opened>>,
    /// Offsets of the next extent and of the end. Locked only by threads that are attached to the
    /// interpreter.
    rest: Mutex<(u64, u64)>,
}

#[pymethods]
impl Extents {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let opened = self.opened.get(py, "image")?;
        let (start, end) = *self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let found = py.detach(|| blkimage::longest_extent(opened.content(), start, end));
        let Some(found) = found.map_err(|error| errors::of_image(py, &error))? else {
            return Ok(None);
        };
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = (found.end(), end);
        let kind = match found.kind {
            ExtentKind::Data => "data",
            ExtentKind::Zero => "zero",
        };
        types::EXTENT.make(py, (start, found.length, kind)).map(Some)
    }
}

/// Bytes that are read between looks at signals.
const PART: usize = 16 << 20;
