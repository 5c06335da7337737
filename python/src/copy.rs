//! `blkhash.copy()`: copies of images, read back and compared.

use std::path::PathBuf;
use std::time::Duration;

use blkcopy::{Existing, Verify};
use blkhash::{Algorithm, Construction, Parameters};
use blkmap::Header;
use blksum::expect::Value;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{self, Definition, value_error};
use crate::copying::{Job, Log, Only, Passes};
use crate::job::Watch;
use crate::open::{Name, Request};

/// Copies an image to a file, a block device or an NBD server, as raw bytes, and reads back what
/// it holds.
///
/// What exists is not overwritten unasked, nor is a file of the source, and nothing that is in use. A
/// new file may be read by users who may read all files of the source, and is removed if the copy fails or is
/// interrupted. With `map`, both files are kept once the map has a checkpoint, and a later call with `resume` continues after the
/// last one.
///
/// Args:
///     source: path of an image, or as `str` also the URI of an NBD server. A `pathlib.Path` is
///         always a path.
///     destination: path of a file or a block device, or as `str` also the URI of an NBD server.
///     digest: name of the digest, as in `algorithms_available`.
///     construction: how digests of blocks become one checksum, as for `checksum()`.
///     block_size: bytes of a block, as for `checksum()`.
///     zeros: what zeros become: "auto" (the default), "write", "punch" (they are deallocated) or
///         "keep-if-zero" (what is zero is left alone).
///     verify: what is compared with the source: "readback" (the destination, read again) or
///         "source" (nothing: the checksum is of what was read).
///     reflink: whether a copy of a raw image within one btrfs or XFS shares its storage: "auto"
///         (if it can, and is read once then) or "never".
///     update: read the destination, and write only what differs.
///     force: overwrite a file that exists, or a device or an export that holds something.
///     changes: copy only these extents of the content, each an offset and a length in bytes, as
///         `Image.changes()` returns them, to a destination that has an older state of the content.
///     bitmap: copy only what this bitmap in a qcow2 image marks, likewise.
///     destination_map: path of a block map of what the destination holds, which is believed. Only
///         the blocks that differ from it are written.
///     map: path of a file to which the block map of the content is written, with checkpoints from which
///         an interrupted copy continues. It excludes `changes`, `bitmap`, `destination_map` and
///         `expect_map`.
///     resume: continue an interrupted copy after the last checkpoint of `map`, by this function or
///         `blkcopy`. What was copied before is compared with the map first, as is the source, or a
///         sample of it if its size and times are the same. A missing map, or one without a checkpoint, begins a copy.
///     checkpoint: seconds between two checkpoints, by default 30.
///     expect: fail unless the content has this checksum: HEX, BASE64 or ALGORITHM:HEX.
///     expect_map: path of a block map, a bmap or another index. Fail unless the destination, which is
///         read back, holds its content.
///     threads: number of threads, by default one per processor.
///     progress: called a few times a second and at the end, with the bytes done and their total.
///         Both count what is read back or compared.
///     cancel: an object like `threading.Event`, which ends the work once it is set.
///     partition: number of a partition, which is then the content.
#[doc = include_str!("options.txt")]
///
/// Returns:
///     A `Copied` with `checksum`, which is the one of `checksum()` for the copy, `size`, `format`
///     of the source, `written`, `zeroed`, `equal` and `shared` bytes, `verified`, `read_back` and
///     `destination_size`.
///
/// Raises:
///     CopyError: the destination is refused or cannot be written. It is also a `FileExistsError`
///         if the file exists, and another `OSError` if the system failed.
///     MismatchError: the destination holds something else than what was written, or the checksum
///         or the content is not the expected one.
///     MapError: a map cannot be read or written, or is not of this copy, or is finished and `resume` is
///         not set (`FileExistsError`).
///     ImageError: the source cannot be opened or read, or the destination cannot be read.
///     ChangedError: the source or the destination changed meanwhile.
///     InUseError: the destination is mounted, or something else writes to it or to the map.
///     CancelledError: `cancel` was set.
///     ValueError, TypeError: an argument is invalid.
///
/// >>> copied = blkhash.copy("disk.qcow2", "copied.raw")
/// >>> copied.checksum == blkhash.checksum("copied.raw").hexdigest
/// True
#[pyfunction]
#[pyo3(
    signature = (source, destination, *, digest=None, construction="streams:4", block_size=None, zeros="auto", verify="readback", reflink="auto", update=false, force=false, changes=None, bitmap=None, destination_map=None, map=None, resume=false, checkpoint=None, expect=None, expect_map=None, threads=None, progress=None, cancel=None, **options),
    text_signature = "(source, destination, *, digest='sha256', construction='streams:4', block_size=None, zeros='auto', verify='readback', reflink='auto', update=False, force=False, changes=None, bitmap=None, destination_map=None, map=None, resume=False, checkpoint=None, expect=None, expect_map=None, threads=None, progress=None, cancel=None, **options)"
)]
#[expect(clippy::too_many_arguments, reason = "as in Python")]
pub fn copy<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    destination: &Bound<'py, PyAny>,
    digest: Option<&str>,
    construction: &str,
    block_size: Option<u64>,
    zeros: &str,
    verify: &str,
    reflink: &str,
    update: bool,
    force: bool,
    changes: Option<&Bound<'py, PyAny>>,
    bitmap: Option<String>,
    destination_map: Option<PathBuf>,
    map: Option<PathBuf>,
    resume: bool,
    checkpoint: Option<f64>,
    expect: Option<&str>,
    expect_map: Option<PathBuf>,
    threads: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
    cancel: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let expected = expect.map(str::parse::<Value>).transpose();
    let expected = expected.map_err(|error| value_error(format!("expect {error}")))?;
    let definition = Definition::new(construction, block_size, None)?;
    let verify = match verify {
        "readback" => Verify::ReadBack,
        "source" => Verify::Source,
        other => {
            let message = format!("verify must be readback or source, not '{other}'");
            return Err(PyValueError::new_err(message));
        }
    };
    let shares = match reflink {
        "auto" => true,
        "never" => false,
        other => {
            let message = format!("reflink must be auto or never, not '{other}'");
            return Err(PyValueError::new_err(message));
        }
    };
    let only = only(changes, bitmap, destination_map)?;
    let is_part = matches!(only, Some(Only::Extents(_) | Only::Bitmap(_)));
    if is_part && verify == Verify::Source {
        return Err(value_error("verify: of a part there is no checksum unless it is read back"));
    }
    if expect_map.is_some() && verify == Verify::Source {
        return Err(value_error("expect_map: compares what is read back, which verify excludes"));
    }
    if resume && update {
        return Err(PyTypeError::new_err("resume and update exclude one another"));
    }
    let excluded = only.is_some() || expect_map.is_some();
    let parameters = parameters(&definition, digest, expected.as_ref())?;
    let log = log((map, resume, checkpoint), excluded, &parameters)?;
    let destination = Name::new(destination)?;
    if log.as_ref().is_some_and(|log| log.path.as_os_str() == destination.as_os_str()) {
        return Err(value_error("map is the destination"));
    }
    let source = Request::new(source, options)?;
    let tuning = arguments::tuning(threads, source.options().max_zeros)?;
    let job = Job {
        source,
        destination,
        existing: match force {
            true => Existing::Overwrite,
            false if update || only.is_some() => Existing::Update,
            false if resume => Existing::Resume,
            false => Existing::Refuse,
        },
        only,
        parameters,
        zeros: zeros.parse().map_err(|error| value_error(format!("zeros: {error:#}")))?,
        updates: update,
        shares,
        verify,
        expected: expected.map(|value| value.digest),
        expected_map: expect_map,
        log,
        tuning,
    };
    let watch = Watch { progress, cancel };
    watch.write(py, move |files, progress| job.run(files, &Passes::new(progress)))?.into_result(py)
}

/// Reads which map to write: its path, whether an interrupted copy continues, and the seconds between checkpoints.
fn log(
    (path, resumes, checkpoint): (Option<PathBuf>, bool, Option<f64>),
    excluded: bool,
    parameters: &Parameters,
) -> PyResult<Option<Log>> {
    let Some(path) = path else {
        return match resumes || checkpoint.is_some() {
            true => Err(PyTypeError::new_err("resume and checkpoint need a map")),
            false => Ok(None),
        };
    };
    if excluded {
        let message = "map excludes changes, bitmap, destination_map and expect_map";
        return Err(PyTypeError::new_err(message));
    }
    let algorithm = parameters.algorithm();
    if !Header::accepts(algorithm) {
        return Err(value_error(format!("there are no maps with digest '{algorithm}'")));
    }
    if resumes && parameters.construction() == Construction::Linear {
        return Err(value_error("resume: linear cannot be continued, as it has no blocks"));
    }
    let interval = checkpoint.map_or(Ok(blkmap::CHECKPOINT), Duration::try_from_secs_f64);
    let interval = interval.map_err(|error| value_error(format!("checkpoint: {error}")))?;
    Ok(Some(Log { path, resumes, interval }))
}

/// Reads what to copy.
fn only(
    changes: Option<&Bound<'_, PyAny>>,
    bitmap: Option<String>,
    destination_map: Option<PathBuf>,
) -> PyResult<Option<Only>> {
    match (changes, bitmap, destination_map) {
        (None, None, None) => Ok(None),
        (None, Some(bitmap), None) => Ok(Some(Only::Bitmap(bitmap))),
        (None, None, Some(map)) => Ok(Some(Only::Differing(map))),
        (Some(changes), None, None) => {
            let extents = changes.try_iter()?.map(|extent| extent?.extract());
            let extents = extents.collect::<PyResult<Vec<_>>>()?;
            arguments::changes(extents).map(Only::Extents).map(Some)
        }
        _ => Err(PyTypeError::new_err("changes, bitmap and destination_map exclude one another")),
    }
}

/// Returns the parameters of the checksum, whose algorithm may be the expected one's.
pub fn parameters(
    definition: &Definition,
    digest: Option<&str>,
    expected: Option<&Value>,
) -> PyResult<Parameters> {
    let named = expected.and_then(|value| value.algorithm);
    let name = digest.or(named.map(Algorithm::name)).unwrap_or("sha256");
    let parameters = definition.parameters(name)?;
    let algorithm = parameters.algorithm();
    match expected {
        _ if algorithm.digest_size() == 0 => {
            Err(value_error(format!("digest {algorithm} is empty, so nothing would be compared")))
        }
        Some(_) if named.is_some_and(|named| named != algorithm) => {
            Err(value_error(format!("expect has another digest than {algorithm}")))
        }
        Some(value) if value.parts.is_some() || value.digest.len() != algorithm.digest_size() => {
            let size = algorithm.digest_size();
            Err(value_error(format!("expect is no {algorithm}, which has {size} bytes")))
        }
        _ => Ok(parameters),
    }
}
