//! `blkhash.checksum()`: checksums of images, several in one pass.

use std::ffi::OsString;

use blkhash::{Digest, Parameters};
use blksum::{Progress, Tuning};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::arguments::{self, Definition};
use crate::errors::Failure;
use crate::job::Watch;
use crate::open::{Opened, Request};
use crate::types;

/// Returns the checksums of the content of an image, as `blksum` prints them, in one pass.
///
/// Args:
///     name: path of an image, or as `str` also the URI of an NBD server. A `pathlib.Path` is
///         always a path.
///     digests: name of a digest, or several, as in `algorithms_available`.
///     construction: how digests of blocks become one checksum: "streams:4", "flat", "concat",
///         "linear", "dm-verity" or "fs-verity".
///     block_size: bytes of a block, a power of two from 512 to 64 MiB, by default that of the
///         construction (64 KiB).
///     salt: bytes that are hashed before each block, for dm-verity and fs-verity.
///     threads: number of threads, by default that of the processors.
///     progress: called a few times a second and at the end, with the bytes done and their total.
///     cancel: an object like `threading.Event`, which ends the work once it is set.
///     partition: number of a partition, which is then the content.
#[doc = include_str!("options.txt")]
///
/// Returns:
///     A `Checksum` with `hexdigests`, a dict from the names in `digests`, `hexdigest` if there is
///     one, `size` in bytes, and
///     `format`.
///
/// Raises:
///     ImageError: the image cannot be opened or read. It is also an `OSError` if the system
///         failed.
///     ChangedError: the image changed while it was read.
///     CancelledError: `cancel` was set.
///     ValueError, TypeError: an argument is invalid.
///
/// >>> blkhash.checksum("disk.qcow2").hexdigest == blkhash.checksum("disk.img").hexdigest
/// True
/// >>> sorted(blkhash.checksum("disk.qcow2", ["sha256", "blake3"]).hexdigests)
/// ['blake3', 'sha256']
#[pyfunction]
#[pyo3(
    signature = (name, digests=None, *, construction="streams:4", block_size=None, salt=None, threads=None, progress=None, cancel=None, **options),
    text_signature = "(name, digests='sha256', *, construction='streams:4', block_size=None, salt=b'', threads=None, progress=None, cancel=None, **options)"
)]
#[expect(clippy::too_many_arguments, reason = "are those of Python")]
pub fn checksum<'py>(
    py: Python<'py>,
    name: &Bound<'py, PyAny>,
    digests: Option<&Bound<'py, PyAny>>,
    construction: &str,
    block_size: Option<u64>,
    salt: Option<&Bound<'py, PyAny>>,
    threads: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
    cancel: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = Request::new(name, options)?;
    let max_zeros = request.options().max_zeros;
    let job = Job::new(digests, construction, block_size, salt, threads, max_zeros)?;
    let names = job.names();
    let watch = Watch { progress, cancel };
    let passed = watch.run(py, move |progress| job.run(&request.open()?, progress))?;
    passed.into_result(py, &names)
}

/// The checksums to compute.
pub struct Job {
    digests: Vec<String>,
    parameters: Vec<Parameters>,
    tuning: Tuning,
}

impl Job {
    pub fn new(
        digests: Option<&Bound<'_, PyAny>>,
        construction: &str,
        block_size: Option<u64>,
        salt: Option<&Bound<'_, PyAny>>,
        threads: Option<usize>,
        max_zeros: Option<u64>,
    ) -> PyResult<Self> {
        let digests = match digests {
            Some(digests) => arguments::digests(digests)?,
            None => vec!["sha256".to_owned()],
        };
        let definition = Definition::new(construction, block_size, salt)?;
        let parameters = digests.iter().map(|name| definition.parameters(name));
        let parameters = parameters.collect::<PyResult<_>>()?;
        Ok(Self { digests, parameters, tuning: arguments::tuning(threads, max_zeros)? })
    }

    /// Returns the names of the digests, as the caller gave them.
    pub fn names(&self) -> Vec<String> {
        self.digests.clone()
    }

    /// Computes the checksums.
    pub fn run(&self, opened: &Opened, progress: &Progress) -> Result<Passed, Failure> {
        let content = opened.content();
        let digests = blksum::checksums(content, &self.parameters, &self.tuning, progress)
            .map_err(|error| Failure::Pass(error, OsString::new()))?;
        let size = blkimage::Source::size(content);
        Ok(Passed { digests, size, format: opened.image().format().name() })
    }
}

/// The result of a pass.
pub struct Passed {
    digests: Vec<Digest>,
    size: u64,
    format: &'static str,
}

impl Passed {
    /// Returns the object for Python.
    pub fn into_result<'py>(
        self,
        py: Python<'py>,
        names: &[String],
    ) -> PyResult<Bound<'py, PyAny>> {
        let digests = PyDict::new(py);
        for (name, digest) in names.iter().zip(&self.digests) {
            digests.set_item(PyString::new(py, name), digest.to_string())?;
        }
        types::CHECKSUM.make(py, (digests, self.size, self.format))
    }
}
