//! `blkhash.copy()`: copies of images, read back and compared.

use std::path::PathBuf;
use std::slice;
use std::sync::Arc;

use blkcopy::{Amounts, Copied, Existing, Reading, Verify, What, Zeros};
use blkhash::{Algorithm, Parameters};
use blkimage::ReadMethod;
use blksum::changes::Changes;
use blksum::expect::Value;
use blksum::{Progress, Tuning};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{self, Definition, value_error};
use crate::destination;
use crate::errors::Failure;
use crate::job::Watch;
use crate::new_file::Unfinished;
use crate::open::{Name, Opened, Request};
use crate::open_map::OpenMap;
use crate::types;

/// Copies an image to a file, a block device or an NBD server, as raw bytes, and reads back what
/// it holds.
///
/// What exists is not overwritten unasked, nor is a file of the source, and nothing that is in use. A
/// new file may be read by users who may read all files of the source, and is removed if the copy fails or is
/// interrupted.
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
///     expect: fail unless the content has this checksum: HEX, BASE64 or ALGORITHM:HEX.
///     threads: number of threads, by default one per processor.
///     progress: called a few times a second and at the end, with the bytes done and their total.
///         Both count what is read back.
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
///         is not the expected one.
///     ImageError: the source cannot be opened or read, or the destination cannot be read.
///     ChangedError: the source or the destination changed meanwhile.
///     InUseError: the destination is mounted, or another process may write to it.
///     CancelledError: `cancel` was set.
///     ValueError, TypeError: an argument is invalid.
///
/// >>> copied = blkhash.copy("disk.qcow2", "copied.raw")
/// >>> copied.checksum == blkhash.checksum("copied.raw").hexdigest
/// True
#[pyfunction]
#[pyo3(
    signature = (source, destination, *, digest=None, construction="streams:4", block_size=None, zeros="auto", verify="readback", reflink="auto", update=false, force=false, changes=None, bitmap=None, destination_map=None, expect=None, threads=None, progress=None, cancel=None, **options),
    text_signature = "(source, destination, *, digest='sha256', construction='streams:4', block_size=None, zeros='auto', verify='readback', reflink='auto', update=False, force=False, changes=None, bitmap=None, destination_map=None, expect=None, threads=None, progress=None, cancel=None, **options)"
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
    expect: Option<&str>,
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
    let source = Request::new(source, options)?;
    let tuning = arguments::tuning(threads, source.options().max_zeros)?;
    let job = Job {
        source,
        destination: Name::new(destination)?,
        existing: match force {
            true => Existing::Overwrite,
            false if update || only.is_some() => Existing::Update,
            false => Existing::Refuse,
        },
        only,
        parameters: parameters(&definition, digest, expected.as_ref())?,
        zeros: zeros.parse().map_err(|error| value_error(format!("zeros: {error:#}")))?,
        updates: update,
        shares,
        verify,
        expected: expected.map(|value| value.digest),
        tuning,
    };
    let file = Arc::new(Unfinished::default());
    let done = Watch { progress, cancel }.run_passes(py, {
        let file = Arc::clone(&file);
        move |progress| job.run(&file, progress)
    });
    // The work may continue for a while.
    done.inspect_err(|_| file.abandon())?.into_result(py)
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

/// What to copy, if it is not all.
enum Only {
    Extents(Changes),
    /// The extents that a bitmap with this name marks.
    Bitmap(String),
    /// The blocks that differ from the map in this file.
    Differing(PathBuf),
}

/// The copy to make.
struct Job {
    source: Request,
    destination: Name,
    existing: Existing,
    only: Option<Only>,
    parameters: Parameters,
    zeros: Zeros,
    updates: bool,
    shares: bool,
    verify: Verify,
    expected: Option<Vec<u8>>,
    tuning: Tuning,
}

impl Job {
    /// Copies. The caller removes the file if that fails.
    fn run(&self, file: &Unfinished, [writing, reading]: &[Progress; 2]) -> Result<Done, Failure> {
        let opened = self.source.open()?;
        let source = opened.content();
        let only = self.extents(&opened)?;
        let size = source.size();
        // What is compared with the source is read after all of the destination.
        let (to_write, to_read) = match &only {
            None => (size, size),
            Some(only) => (only.bytes(), size.saturating_add(only.bytes())),
        };
        writing.set_total(to_write);
        if self.verify == Verify::ReadBack {
            reading.set_total(to_read);
        }
        let map = match &self.only {
            Some(Only::Differing(path)) => Some(&**path),
            _ => None,
        };
        let base = map.map(|path| OpenMap::open(path, None)).transpose()?;
        let name = self.destination.as_os_str();
        let reading_of = Reading::Name(self.source.name().location());
        let (destination, found) = destination::open(
            &self.destination,
            self.existing,
            Some((reading_of, opened.image())),
            map.map(|path| (path, "the map of destination_map")),
            self.zeros,
            self.source.options(),
            file,
        )?;
        let is_whole = self.shares && opened.selected.part().is_none();
        let what = match (&base, &only) {
            (Some(base), _) => What::Differing(&base.map),
            (None, Some(only)) => What::Only(only),
            (None, None) => What::All,
        };
        let copied = blkcopy::Job::new(what, slice::from_ref(&self.parameters))
            .share(opened.image().whole_file().filter(|_| is_whole))
            .zeros(self.zeros)
            .update(self.updates)
            .verify(self.verify)
            .run(source, destination, &self.tuning, writing, reading)
            .map_err(|error| Failure::Copy(error, name.to_owned()))?;
        if let (Some(expected), digest) = (&self.expected, copied.digests[0])
            && digest.as_bytes() != expected
        {
            let reason = format!("has the checksum {digest}, and not the one of expect");
            return Err(Failure::Unexpected("expected", reason, name.to_owned()));
        }
        let refused = |refused| Failure::Refused(refused, name.to_owned());
        found.check_named().map_err(refused)?;
        let format = opened.image().format().name();
        Ok(Done { copied, format, verify: self.verify })
    }

    /// Returns the extents of the content to copy, or `None` for all.
    fn extents(&self, opened: &Opened) -> Result<Option<Changes>, Failure> {
        let selected = &opened.selected;
        Ok(match &self.only {
            None | Some(Only::Differing(_)) => None,
            // Offsets are in the content.
            Some(Only::Extents(changes)) => Some(changes.in_part(0, selected.size())),
            Some(Only::Bitmap(name)) => {
                let marked = Changes::of_bitmap(opened.image(), name.as_bytes())?;
                Some(marked.in_part(selected.offset(), selected.size()))
            }
        })
    }
}

/// The result of a copy.
pub struct Done {
    pub copied: Copied,
    pub format: &'static str,
    pub verify: Verify,
}

impl Done {
    pub fn into_result(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let Self { copied, format, verify } = self;
        let Copied { digests, size, amounts, read_back, destination_size, .. } = copied;
        let all = Amounts { written: size, ..Amounts::default() };
        let Amounts { written, zeroed, equal, shared, .. } = amounts.unwrap_or(all);
        let checksum = digests[0].to_string();
        let verified = match verify {
            Verify::ReadBack => "readback",
            Verify::Source => "source",
        };
        let read_back = read_back.map(ReadMethod::name);
        types::COPIED.make(
            py,
            (
                checksum,
                size,
                format,
                written,
                zeroed,
                equal,
                verified,
                read_back,
                destination_size,
                shared,
            ),
        )
    }
}
