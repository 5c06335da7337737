//! `blkhash.Map`: a block map.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use blkhash::Construction;
use blkindex::Format;
use blkmap::Key;
use blksum::map::{AuditSummary, History, State};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyModule};

use crate::arguments::{self, cannot_pickle, value_error};
use crate::buffer::Buffer;
use crate::differences::{Asked, Differences};
use crate::errors::{self, Failure};
use crate::input::Input;
use crate::job::Watch;
use crate::map_runs::Runs;
use crate::open_map::{self, OpenMap};
use crate::process::Owned;
use crate::types;

/// An open block map: the digest of every block of an image.
///
/// Args:
///     path: path of the map, or of an index of another program: .fidx, .caibx or .block-hash-index.
///     commit: number of an earlier commit in the file, instead of the last one.
///
/// Raises:
///     MapError: the map cannot be read, is damaged or not finished. It is also an `OSError` if the
///         system failed.
///
/// Offsets and lengths are in bytes of the content. The map is checked as it is read, so that any
/// method may raise `MapError`.
///
/// >>> monday = blkhash.create_map("disk.qcow2", "monday.blkmap")
/// >>> monday.verify("damaged.img")
/// [Difference(offset=1966080, length=65536, kind='changed')]
#[pyclass(frozen, module = "blkhash")]
pub struct Map(Arc<Owned<OpenMap>>);

#[pymethods]
impl Map {
    #[new]
    #[pyo3(signature = (path, *, commit=None))]
    fn new(py: Python<'_>, path: PathBuf, commit: Option<u64>) -> PyResult<Self> {
        let opened = Watch::NONE.run(py, move |_| OpenMap::open(&path, commit))?;
        Ok(Self(Arc::new(Owned::new(opened))))
    }

    /// Name of the file.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<OsString> {
        Ok(self.opened(py)?.name.clone())
    }

    /// Name of the digest.
    #[getter]
    fn algorithm(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.opened(py)?.map.header().algorithm.name())
    }

    /// Length of a digest in bytes.
    #[getter]
    fn digest_size(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.opened(py)?.map.header().algorithm.digest_size())
    }

    /// Length of a block in bytes.
    #[getter]
    fn block_size(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.opened(py)?.map.header().block_size.get())
    }

    /// Salt, which is hashed before each block.
    #[getter]
    fn salt<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.opened(py)?.map.header().salt.as_bytes()))
    }

    /// Size of the image in bytes.
    #[getter]
    fn image_size(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.opened(py)?.map.commit().image_size())
    }

    /// Number of blocks of the image.
    #[getter]
    fn block_count(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.opened(py)?.map.commit().blocks())
    }

    /// Number of the commit that the map was opened at.
    #[getter]
    fn commit(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.opened(py)?.map.commit().sequence())
    }

    /// Whether the map has every block.
    #[getter]
    fn is_complete(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.opened(py)?.map.is_complete())
    }

    /// Whether the map has a seal. `check_seal` checks it.
    #[getter]
    fn is_sealed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.opened(py)?.map.commit().seal().is_some())
    }

    /// Root of the tree over the pages, if the map is complete.
    #[getter]
    fn root<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let root = self.opened(py)?.map.commit().root();
        Ok(root.map(|root| PyBytes::new(py, &root)))
    }

    /// Identity of the content with its digest, block size and salt, if the map is complete.
    #[getter]
    fn content_id<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let map = &self.opened(py)?.map;
        Ok(map.commit().content_id(map.header()).map(|id| PyBytes::new(py, &id)))
    }

    /// The description of the image, an object of JSON.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let OpenMap { map, name } = self.opened(py)?;
        let text = map.info().map_err(|error| errors::of_map(py, &error, name))?;
        PyModule::import(py, "json")?.call_method1("loads", (text,))
    }

    /// Raises `MapError` unless the map is sealed with this key, of 16 to 4096 bytes.
    fn check_seal(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let OpenMap { map, name } = self.opened(py)?;
        map.check_seal(&self::key(key)?).map_err(|error| errors::of_map(py, &error, name))
    }

    /// Reads every byte of the map. Raises `MapError` if one is wrong.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let shared = self.shared(py)?;
        Watch::NONE.run(py, move |progress| {
            let OpenMap { map, name } = shared.here()?;
            let mut watch = |_| match progress.is_cancelled() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            blkmap::check(map, &mut watch).map_err(|error| Failure::Map(error, name.clone()))
        })
    }

    /// Returns an iterator over the runs of blocks, which are `Run` tuples.
    fn runs(&self, py: Python<'_>) -> PyResult<Runs> {
        Ok(Runs::new(self.shared(py)?))
    }

    /// Returns an iterator over the blocks, which are `Block` tuples.
    fn blocks<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        types::BLOCKS.make(slf.py(), (slf,))
    }

    /// Returns where another map differs from this one, without the images, as a list of
    /// `Difference`.
    ///
    /// Raises `MapError` if the maps have other digests, block sizes or salts, or cannot be read, and
    /// `ValueError` if more than `limit` extents differ, or one map is of a partition and the other of a
    /// whole image.
    #[pyo3(signature = (other, *, limit=262144))]
    fn diff<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, Self>,
        limit: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (left, right) = (self.shared(py)?, other.get().shared(py)?);
        let differences = Watch::NONE.run(py, move |_| {
            let (left, right) = (left.here()?, right.here()?);
            let mut found = Differences::new(limit);
            let mut push = |difference| found.push(difference);
            let compared = blksum::map::diff(&left.map, &right.map, &mut push);
            compared.map_err(|error| match error {
                blksum::Error::Map(error) => {
                    Failure::Maps(error, left.name.clone(), right.name.clone())
                }
                error => {
                    let reason = format!("compared with {}: {error}", right.name.display());
                    Failure::Value(left.name.to_string_lossy().into_owned(), reason)
                }
            })?;
            Ok(found)
        })?;
        differences.into_list(py)
    }

    /// Returns where an image differs from the map, as a `Differences`, which is a list of `Difference`, empty if
    /// it does not. With `ignore_free` or `owners` it says what the blocks are used for, if the image has a file system that is
    /// read.
    ///
    /// Args:
    ///     image: an `Image` or the name of one.
    ///     ignore_tail: leave out what the image, which must be a whole one, has past the end of the map, as a
    ///         card that is larger.
    ///     ignore_free: leave out blocks that the file systems of the image call free.
    ///     owners: find out what the blocks are used for, and the files that they belong to.
    ///     limit: largest number of extents, so that a map cannot use all memory.
    ///     threads: number of threads, by default one per processor.
    ///     progress: called a few times a second and at the end, with the bytes done and their
    ///         total.
    ///     cancel: an object like `threading.Event`, which ends the work once it is set.
    ///
    /// Raises:
    ///     ImageError: the image cannot be opened or read, or changed meanwhile (`ChangedError`).
    ///     MapError: the map cannot be read.
    ///     CancelledError: `cancel` was set.
    ///     ValueError: more than `limit` extents differ, or the map is of another part of the image, or
    ///         `ignore_tail` would leave nothing. The map of a whole image is one of its partitions, too.
    #[pyo3(signature = (image, *, ignore_tail=false, ignore_free=false, owners=false, limit=262144, threads=None, progress=None, cancel=None))]
    #[expect(clippy::too_many_arguments, reason = "as in Python")]
    fn verify<'py>(
        &self,
        py: Python<'py>,
        image: &Bound<'py, PyAny>,
        ignore_tail: bool,
        ignore_free: bool,
        owners: bool,
        limit: usize,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
        cancel: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shared = self.shared(py)?;
        let input = Input::new(image)?;
        let tuning = arguments::tuning(threads, None)?;
        let asked = Asked { ignore_free, owners };
        let watch = Watch { progress, cancel };
        let differences = watch.run(py, move |progress| {
            let map = shared.here()?;
            input.with_disk(|image| {
                let size = map.map.commit().image_size();
                let cut = ignore_tail.then(|| image.without_tail(size)).transpose()?;
                let image = cut.as_ref().unwrap_or(image);
                let block_size = map.map.header().block_size;
                let found = Differences::new(limit);
                let mut found = found.with_uses(&[image], block_size, asked);
                let mut push = |difference| found.push(difference);
                blksum::map::verify(&map.map, &image.selected, &mut push, &tuning, progress)
                    .map_err(|error| Failure::Pass(error, map.name.clone()))?;
                Ok(found.finish()?)
            })
        })?;
        differences.into_list(py)
    }

    /// Judges a list of changes since this map was made, each offset and length in bytes: returns an `Audit` with what changed
    /// in the image and is not listed.
    ///
    /// Args:
    ///     image: an `Image` or the name of one.
    ///     changes: the extents, in any order.
    ///     limit: largest number of extents that are missed.
    ///     threads: number of threads, by default one per processor.
    ///     progress: called a few times a second and at the end, with the bytes done and their
    ///         total.
    ///     cancel: an object like `threading.Event`, which ends the work once it is set.
    ///
    /// Raises:
    ///     ImageError: the image cannot be opened or read, or changed meanwhile (`ChangedError`).
    ///     MapError: the map cannot be read.
    ///     CancelledError: `cancel` was set.
    ///     ValueError: more than `limit` extents are missed, or the map is of another part of the image.
    #[pyo3(signature = (image, changes, *, limit=262144, threads=None, progress=None, cancel=None))]
    #[expect(clippy::too_many_arguments, reason = "as in Python")]
    fn audit<'py>(
        &self,
        py: Python<'py>,
        image: &Bound<'py, PyAny>,
        changes: Vec<(u64, u64)>,
        limit: usize,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
        cancel: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shared = self.shared(py)?;
        let input = Input::new(image)?;
        let changes = arguments::changes(changes)?;
        let tuning = arguments::tuning(threads, None)?;
        let watch = Watch { progress, cancel };
        let (summary, missed) = watch.run(py, move |progress| {
            let map = shared.here()?;
            input.with_disk(|image| {
                let mut found = Differences::new(limit);
                let mut push = |difference| found.push(difference);
                let selected = &image.selected;
                blksum::map::audit(&map.map, selected, &changes, &mut push, &tuning, progress)
                    .map(|summary| (summary, found))
                    .map_err(|error| Failure::Pass(error, map.name.clone()))
            })
        })?;
        let AuditSummary { listed, needless, clean, unknown, listed_bytes, needless_bytes, .. } =
            summary;
        let missed = missed.into_list(py)?;
        let fields = (missed, listed, needless, clean, unknown, listed_bytes, needless_bytes);
        types::AUDIT.make(py, fields)
    }

    /// Returns what each state of the map changed, the last one first, as a list of `State`.
    ///
    /// Args:
    ///     offset: first byte of the image that counts.
    ///     length: number of bytes, by default all that follow.
    ///
    /// Raises `MapError` if a state cannot be read.
    #[pyo3(signature = (offset=0, length=None))]
    fn history<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        length: Option<u64>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let shared = self.shared(py)?;
        let end = length.map_or(u64::MAX, |length| offset.saturating_add(length));
        let states = Watch::NONE.run(py, move |_| {
            let map = shared.here()?;
            let states = History::new(map.map.clone(), offset..end).collect::<Result<Vec<_>, _>>();
            states.map_err(|error| Failure::Pass(error, map.name.clone()))
        })?;
        let make = |state: &State| {
            let changed = state.changed.map(|it| (it.blocks, it.bytes, it.extents));
            let (blocks, bytes, extents) = changed
                .map_or((None, None, None), |(blocks, bytes, extents)| {
                    (Some(blocks), Some(bytes), Some(extents))
                });
            let (commit, created) = (state.map.commit(), state.created());
            let fields = (commit.sequence(), created, commit.image_size(), blocks, bytes, extents);
            types::STATE.make(py, fields)
        };
        states.iter().map(make).collect()
    }

    /// Returns the checksum of the image with the digest and block size of the map, in hexadecimal
    /// digits.
    ///
    /// Args:
    ///     construction: "streams:4", "flat", "concat", "dm-verity" or "fs-verity"; "linear" for
    ///         CRCs.
    ///     threads: number of threads, by default one per processor.
    ///
    /// Raises `MapError` if the map is not complete, and `ValueError` if it cannot give this
    /// checksum.
    #[pyo3(signature = (construction="streams:4", *, threads=None))]
    fn checksum(
        &self,
        py: Python<'_>,
        construction: &str,
        threads: Option<usize>,
    ) -> PyResult<String> {
        let construction: Construction = construction.parse().map_err(value_error)?;
        let threads = arguments::threads(threads)?;
        let shared = self.shared(py)?;
        Watch::NONE.run(py, move |_| {
            let OpenMap { map, name } = shared.here()?;
            let digest = blkmap::checksum(map, construction, threads);
            digest.map(|it| it.to_string()).map_err(|error| Failure::Map(error, name.clone()))
        })
    }

    /// Writes the map in another format to a new file.
    ///
    /// Args:
    ///     path: path of the new file.
    ///     format: "lines", "csv", "json", "bmap", "fidx", "caibx" or "raw".
    ///
    /// Raises:
    ///     FileExistsError: `path` exists. It is also a `MapError`.
    ///     MapError: the map cannot be read or does not fit the format, or the file cannot be written.
    ///     ValueError: the format is unknown.
    fn export(&self, py: Python<'_>, path: PathBuf, format: &str) -> PyResult<()> {
        let format = Format::written(format).map_err(value_error)?;
        let shared = self.shared(py)?;
        Watch::NONE.write(py, move |files, [_]| {
            let OpenMap { map, name } = shared.here()?;
            let file = open_map::create(&path, [&**name], files)?;
            blkindex::export(map, format, file).map_err(|error| Failure::Map(error, name.clone()))
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let OpenMap { map, name } = self.opened(py)?;
        let (header, size) = (map.header(), map.commit().image_size());
        let (algorithm, block_size) = (header.algorithm, header.block_size);
        Ok(format!("<blkhash.Map {name:?} {algorithm} block_size={block_size} {size} bytes>"))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(cannot_pickle("blkhash.Map"))
    }
}

impl Map {
    fn opened(&self, py: Python<'_>) -> PyResult<&OpenMap> {
        self.0.get(py, "map")
    }

    /// Returns the map for another thread.
    pub fn shared(&self, py: Python<'_>) -> PyResult<Arc<Owned<OpenMap>>> {
        self.opened(py)?;
        Ok(Arc::clone(&self.0))
    }
}

/// Returns the key in a buffer.
pub fn key(key: &Bound<'_, PyAny>) -> PyResult<Key> {
    Key::new(Buffer::of(key)?.bytes().to_vec())
        .ok_or_else(|| PyValueError::new_err("a key has 16 to 4096 bytes"))
}
