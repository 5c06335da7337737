//! `blkhash.send_delta()` and `apply_delta()`: what differs from a block map, as a file or through a pipe.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;

use blkcopy::{Apply, Existing, Sent, Verify, Zeros};
use blkhash::Parameters;
use blkimage::OpenOptions;
use blksum::expect::Value;
use blksum::{Progress, Tuning};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{self, Definition, value_error};
use crate::copied::Done;
use crate::copy::parameters;
use crate::destination;
use crate::errors::Failure;
use crate::job::Watch;
use crate::open::{Name, Request};
use crate::open_map::OpenMap;
use crate::types;
use crate::unfinished::Unfinished;

/// Writes what differs between an image and a block map, which a host with the content of the map makes
/// the image of with `apply_delta()`.
///
/// Args:
///     base: path of the block map.
///     source: path of an image, or as `str` also the URI of an NBD server.
///     delta: path of a new file, or of a pipe, such as `/dev/stdout` or `/dev/fd/N`. The file is
///         removed if the work fails.
///     digest: name of the digest, as in `algorithms_available`.
///     construction: how digests of blocks become one checksum, as for `checksum()`.
///     block_size: bytes of a block of the checksum, as for `checksum()`.
///     expect: fail unless the image has this checksum: HEX, BASE64 or ALGORITHM:HEX. A delta in a
///         pipe gets no end then, and is refused.
///     threads: number of threads, by default one per processor.
///     progress: called a few times a second and at the end, with the bytes done and their total.
///     cancel: an object like `threading.Event`, which ends the work once it is set.
///     partition: number of a partition, which is then the content.
#[doc = include_str!("options.txt")]
///
/// Returns:
///     A `SentDelta` with `checksum` and `size` of the image, `changed`, the bytes in blocks that
///     differ, and `length`, the bytes of the delta.
///
/// Raises:
///     MapError: the map cannot be read, or does not know every block.
///     FileExistsError: the delta is there, and is no pipe.
///     CopyError, OSError: the delta cannot be written.
///     MismatchError: the checksum is not the expected one.
///     ImageError: the image cannot be opened or read.
///     ChangedError: the image changed meanwhile.
///     CancelledError: `cancel` was set.
///     ValueError, TypeError: an argument is invalid.
#[pyfunction]
#[pyo3(
    signature = (base, source, delta, *, digest=None, construction="streams:4", block_size=None, expect=None, threads=None, progress=None, cancel=None, **options),
    text_signature = "(base, source, delta, *, digest='sha256', construction='streams:4', block_size=None, expect=None, threads=None, progress=None, cancel=None, **options)"
)]
#[expect(clippy::too_many_arguments, reason = "as in Python")]
pub fn send_delta<'py>(
    py: Python<'py>,
    base: PathBuf,
    source: &Bound<'py, PyAny>,
    delta: PathBuf,
    digest: Option<&str>,
    construction: &str,
    block_size: Option<u64>,
    expect: Option<&str>,
    threads: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
    cancel: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let expected = expect.map(str::parse::<Value>).transpose();
    let expected = expected.map_err(|error| value_error(format!("expect {error}")))?;
    let definition = Definition::new(construction, block_size, None)?;
    let parameters = parameters(&definition, digest, expected.as_ref())?;
    let source = Request::new(source, options)?;
    let tuning = arguments::tuning(threads, source.options().max_zeros)?;
    let sending = Sending { source, delta, parameters, expected, tuning };
    let sent = Watch { progress, cancel }.write(py, move |files, [progress]| {
        let base = OpenMap::open(&base, None)?;
        sending.run(&base, files, progress)
    });
    let Sent { copied, changed, length, .. } = sent?;
    let checksum = copied.digests[0].to_string();
    types::SENT_DELTA.make(py, (checksum, copied.size, changed, length))
}

/// The delta to send.
struct Sending {
    source: Request,
    delta: PathBuf,
    parameters: Parameters,
    expected: Option<Value>,
    tuning: Tuning,
}

impl Sending {
    fn run(
        &self,
        base: &OpenMap,
        files: &Unfinished,
        progress: &Progress,
    ) -> Result<Sent, Failure> {
        let opened = self.source.open()?;
        let is_stream = self.delta.metadata().is_ok_and(|found| {
            let kind = found.file_type();
            kind.is_fifo() || kind.is_socket() || kind.is_char_device()
        });
        let file = match is_stream {
            true => File::options().write(true).open(&self.delta),
            false => files.create(&self.delta, opened.files().chain([&*base.name])),
        };
        let file = file.map_err(|error| self.failed(error))?;
        self.write(base, opened.content(), file, progress)
    }

    /// Writes the delta. The caller removes the file if that fails.
    fn write(
        &self,
        base: &OpenMap,
        content: &dyn blkimage::Source,
        file: File,
        progress: &Progress,
    ) -> Result<Sent, Failure> {
        let mut output = BufWriter::with_capacity(BUFFER, file);
        let expected = self.expected.as_ref().map(|value| &*value.digest);
        let (parameters, tuning) = (&self.parameters, &self.tuning);
        let sent = blkcopy::send_delta(
            &base.map,
            content,
            &mut output,
            parameters,
            expected,
            tuning,
            progress,
        );
        let sent = sent.map_err(|error| match error {
            blkcopy::Error::Base(error) => Failure::Map(error, base.name.clone()),
            blkcopy::Error::Unexpected(digest) => Failure::Unexpected(
                "expected",
                format!("has the checksum {digest}, and not the one of expect"),
                self.source.name().as_os_str().to_owned(),
            ),
            error @ blkcopy::Error::Source(_) => {
                Failure::Copy(error, self.source.name().as_os_str().to_owned())
            }
            error => Failure::Copy(error, self.delta.as_os_str().to_owned()),
        })?;
        output.flush().map_err(|error| self.failed(error))?;
        Ok(sent)
    }

    fn failed(&self, error: io::Error) -> Failure {
        Failure::File(error, self.delta.as_os_str().to_owned())
    }
}

/// Applies a delta of `send_delta()` or `blkcopy --delta-from` to a destination that has the content of its map.
///
/// A block is overwritten only if it has the digest of the map, or already the new content, so that a
/// delta that was applied in part can be applied again.
///
/// Args:
///     delta: path of the delta, a file or a pipe, such as `/dev/stdin` or `/dev/fd/N`.
///     destination: path of a file or a block device, or as `str` also the URI of an NBD server.
///     digest: name of the digest of the checksum that is returned, as in `algorithms_available`.
///     construction: how digests of blocks become one checksum, as for `checksum()`.
///     block_size: bytes of a block of the checksum, as for `checksum()`.
///     zeros: what zeros become, as for `copy()`.
///     force: overwrite blocks whatever they hold, which is right only where an interruption left
///         half of a block, and apply a delta that leaves nothing.
///     threads: number of threads, by default one per processor.
///     progress: called a few times a second and at the end, with the bytes done and their total.
///         Both count what is read back.
///     cancel: an object like `threading.Event`, which ends the work once it is set.
///
/// Returns:
///     A `Copied`, as of `copy()`. The destination was read back, and has the checksum that the delta
///     states.
///
/// Raises:
///     CopyError: the destination is refused, cannot be written, or does not have the content of the map,
///         or the delta is damaged or ends early. What was applied before stays.
///     MismatchError: the destination does not have the checksum of the delta afterwards.
///     ImageError: the destination cannot be read.
///     InUseError: the destination is mounted, or another process may write to it.
///     OSError: the delta cannot be opened.
///     CancelledError: `cancel` was set.
///     ValueError, TypeError: an argument is invalid.
#[pyfunction]
#[pyo3(
    signature = (delta, destination, *, digest=None, construction="streams:4", block_size=None, zeros="auto", force=false, threads=None, progress=None, cancel=None),
    text_signature = "(delta, destination, *, digest='sha256', construction='streams:4', block_size=None, zeros='auto', force=False, threads=None, progress=None, cancel=None)"
)]
#[expect(clippy::too_many_arguments, reason = "as in Python")]
pub fn apply_delta<'py>(
    py: Python<'py>,
    delta: PathBuf,
    destination: &Bound<'py, PyAny>,
    digest: Option<&str>,
    construction: &str,
    block_size: Option<u64>,
    zeros: &str,
    force: bool,
    threads: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
    cancel: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let definition = Definition::new(construction, block_size, None)?;
    let applying = Applying {
        destination: Name::new(destination)?,
        zeros: zeros.parse().map_err(|error| value_error(format!("zeros: {error:#}")))?,
        force,
        parameters: parameters(&definition, digest, None)?,
        tuning: arguments::tuning(threads, None)?,
    };
    let watch = Watch { progress, cancel };
    let done = watch.write(py, move |files, progress| applying.run(&delta, files, progress));
    done?.into_result(py)
}

/// The delta to apply.
struct Applying {
    destination: Name,
    zeros: Zeros,
    force: bool,
    parameters: Parameters,
    tuning: Tuning,
}

impl Applying {
    fn run(
        &self,
        delta: &Path,
        files: &Arc<Unfinished>,
        [writing, reading]: &[Progress; 2],
    ) -> Result<Done, Failure> {
        let reader = File::open(delta);
        let reader = reader.map_err(|error| Failure::File(error, delta.as_os_str().to_owned()))?;
        let mut reader = BufReader::with_capacity(BUFFER, reader);
        let name = self.destination.as_os_str();
        let options = OpenOptions::new();
        let (destination, found) = destination::open(
            &self.destination,
            if self.force { Existing::Overwrite } else { Existing::Update },
            None,
            &[(delta, "the delta")],
            self.zeros,
            &options,
            files,
        )?;
        let apply = Apply::new().zeros(self.zeros).force(self.force);
        let parameters = slice::from_ref(&self.parameters);
        let copied =
            apply.run(&mut reader, destination, parameters, &self.tuning, writing, reading);
        let copied = copied.map_err(|error| Failure::Copy(error, name.to_owned()))?;
        let checked = found.check_named();
        checked.map_err(|refused| Failure::Refused(refused, name.to_owned()))?;
        Ok(Done { copied, format: "raw", verify: Verify::ReadBack })
    }
}

/// Number of bytes that are read and written at a time.
const BUFFER: usize = 256 << 10;
