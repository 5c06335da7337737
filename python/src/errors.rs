//! Converts errors to exceptions, whose classes are in `blkhash/_errors.py`.

use std::ffi::{OsStr, OsString};
use std::io;

use blkcopy::{NotExpected, Refused};
use blkimage::{Hint, OpenOption, OptionKind};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::types;

/// The reason why work on images and maps failed.
pub enum Failure {
    /// An image cannot be opened or read.
    Image(blkimage::Error),
    /// The file systems of this image, or of all images, cannot be verified.
    Btrfs(blkbtrfs::Unverified, Option<OsString>),
    /// A check of an image failed.
    Check(blkcheck::Error),
    /// The image with this name has no file system that is read.
    NoFiles(OsString),
    /// A pass over an image failed. The map has this name.
    Pass(blksum::Error, OsString),
    /// The map with this name cannot be read or written.
    Map(blkmap::Error, OsString),
    /// The map with the first name cannot be compared with the map with the second name.
    Maps(blkmap::Error, OsString, OsString),
    /// The destination with this name is not written to.
    Refused(blkcopy::Refused, OsString),
    /// The map with this name is not the log of a copy.
    Log(blkcopy::Refused, OsString),
    /// The destination with the first name is not, or cannot be, compared with the map with the second name as equal.
    NotExpected(NotExpected, OsString, OsString),
    /// A copy to the destination with this name failed.
    Copy(blkcopy::Error, OsString),
    /// What has this name has another checksum than the expected one, with a word for programs and a reason.
    Unexpected(&'static str, String, OsString),
    /// The image with this name does not have what was asked for.
    Value(String, String),
    /// The check file with this name is none.
    Sums(String, OsString),
    /// The system could not read the file with this name, which is no image.
    File(io::Error, OsString),
    /// The system or this package failed.
    Other(String),
}

impl Failure {
    /// Returns whether a copy was cancelled while its destination was read back.
    pub fn is_cancelled(&self) -> bool {
        use blkcopy::Error::ReadBack;
        matches!(self, Self::Copy(ReadBack(blksum::Error::Cancelled), _))
    }

    /// Returns the exception.
    pub fn into_err(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Btrfs(error, name) => of_btrfs(py, &error, name.as_deref()),
            Self::Image(error) | Self::Check(blkcheck::Error::Image(error)) => of_image(py, &error),
            Self::Check(blkcheck::Error::Cancelled) => cancelled(py),
            Self::Check(error) => other(py, &error.to_string()),
            Self::NoFiles(name) => {
                let reason = "has no file system that is read";
                let message = format!("{}: {reason}", name.display());
                new(py, "image", ("format", message, &*name, None::<u64>, None::<i32>))
            }
            Self::Pass(error, name) => of_pass(py, &error, &name),
            Self::Map(error, name) => of_map(py, &error, &name),
            Self::Maps(error, left, right) => {
                let shown = format!("{}, compared with {}", left.display(), right.display());
                of_map_shown(py, &error, &left, &shown)
            }
            Self::Refused(refused, name) => of_refused(py, &refused, &name),
            Self::Log(refused, name) => of_log(py, &refused, &name),
            Self::NotExpected(error, name, map) => of_not_expected(py, &error, &name, &map),
            Self::Copy(error, name) => of_copy(py, &error, &name),
            Self::Unexpected(kind, reason, name) => {
                let message = format!("{}: {reason}", name.display());
                new(py, "mismatch", (kind, message, &*name, None::<u64>))
            }
            Self::Value(name, reason) => PyValueError::new_err(format!("{name}: {reason}")),
            Self::Sums(reason, name) => {
                let message = format!("{}: {reason}", name.display());
                new(py, "sums", (message, &*name))
            }
            Self::File(error, name) => match error.raw_os_error() {
                // Python chooses the class by the number.
                Some(errno) => PyOSError::new_err((errno, strerror(&error), name)),
                None => PyOSError::new_err(format!("{}: {error}", name.display())),
            },
            Self::Other(reason) => other(py, &reason),
        }
    }
}

impl From<blkimage::Error> for Failure {
    fn from(error: blkimage::Error) -> Self {
        Self::Image(error)
    }
}

/// Converts an error of an image.
pub fn of_image(py: Python<'_>, error: &blkimage::Error) -> PyErr {
    of_image_advised(py, error, &advice(error.hint()))
}

fn of_image_advised(py: Python<'_>, error: &blkimage::Error, advice: &str) -> PyErr {
    let source = error.io_error();
    let errno = match error.kind() {
        blkimage::ErrorKind::Directory => Some(EISDIR),
        _ => source.and_then(io::Error::raw_os_error),
    };
    let mut message = match source {
        Some(source) if errno.is_none() => format!("{error}: {source}"),
        _ => error.to_string(),
    };
    message += advice;
    let name: &OsStr = error.name().as_os_str();
    let kind = kind(error.kind());
    new(py, "image", (kind, message, name, error.offset(), errno))
}

/// Describes why an image cannot be opened, without its name.
pub fn reason(error: &blkimage::Error) -> String {
    let source = error.io_error().map(|source| format!(": {source}")).unwrap_or_default();
    format!("{}{source}{}", error.reason(), advice(error.hint()))
}

/// Returns which argument helps, after a colon.
pub fn advice(hint: Option<Hint>) -> String {
    hint.map_or_else(String::new, |hint| {
        format!(": {}", hint.describe(say, |way| way.describe("FILE")))
    })
}

/// Writes an argument.
fn say(option: OpenOption, value: Option<&str>) -> String {
    let name = option.name().replace('-', "_");
    match (value, option.kind()) {
        (Some(value), _) => format!("{name}=\"{value}\""),
        (None, OptionKind::Flag) => format!("{name}=True"),
        (None, _) => name,
    }
}

fn of_btrfs(py: Python<'_>, unverified: &blkbtrfs::Unverified, name: Option<&OsStr>) -> PyErr {
    use blkbtrfs::Error;
    let kind = match &unverified.error {
        Error::Image(error) => return of_image(py, error),
        Error::Cancelled => return cancelled(py),
        Error::NotBtrfs { .. } => "format",
        Error::Superblock { .. } | Error::Corrupt { .. } | Error::Part { .. } => "corrupt",
        Error::Unsupported(_) => "unsupported",
        Error::Devices(_) => "argument",
        _ => "other",
    };
    let message = unverified.to_string();
    new(py, "image", (kind, message, name, None::<u64>, None::<i32>))
}

fn of_pass(py: Python<'_>, error: &blksum::Error, map: &OsStr) -> PyErr {
    match error {
        blksum::Error::Image(error) => of_image(py, error),
        blksum::Error::Hash(error) => PyValueError::new_err(error.to_string()),
        blksum::Error::Zeros { .. } => {
            let message = format!("{error}{}", advice(Some(Hint::MaxZeros)));
            new(py, "image", ("size", message, None::<&str>, None::<u64>, None::<i32>))
        }
        blksum::Error::Map(error) => of_map(py, error, map),
        blksum::Error::OtherPart(other) => {
            PyValueError::new_err(format!("{}: {other}", map.display()))
        }
        blksum::Error::Missed { offset, .. } => {
            let message = format!("{}: {error}", map.display());
            new(py, "map", (message, map, Some(*offset), None::<i32>))
        }
        blksum::Error::Cancelled => cancelled(py),
        error => other(py, &error.to_string()),
    }
}

/// Converts an error of the map with this name.
pub fn of_map(py: Python<'_>, error: &blkmap::Error, name: &OsStr) -> PyErr {
    of_map_shown(py, error, name, &name.display().to_string())
}

fn of_map_shown(py: Python<'_>, error: &blkmap::Error, name: &OsStr, shown: &str) -> PyErr {
    let (errno, offset) = match error {
        blkmap::Error::Io(error) => (error.raw_os_error(), None),
        blkmap::Error::Damaged { offset, .. } => (None, Some(*offset)),
        _ => (None, None),
    };
    new(py, "map", (format!("{shown}: {error}"), name, offset, errno))
}

fn of_refused(py: Python<'_>, refused: &Refused, name: &OsStr) -> PyErr {
    let (kind, advice, errno) = match refused {
        Refused::Image(error) => return of_image(py, error),
        // Nothing is written to what is in use.
        Refused::Used(error) => return of_image_advised(py, error, ""),
        Refused::Open(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            let message = format!("{}: is mounted or in use", name.display());
            let errno = error.raw_os_error();
            return new(py, "image", ("in-use", message, name, None::<u64>, errno));
        }
        Refused::Busy => {
            let message = format!("{}: {refused}", name.display());
            return new(py, "image", ("in-use", message, name, None::<u64>, None::<i32>));
        }
        Refused::Open(error) => ("open", "", error.raw_os_error()),
        // The class of the system's error would hide what is to be done.
        Refused::NoCheckpoint => ("exists", ": force=True overwrites it", None),
        Refused::NotCopied(unlike) => {
            let message = format!("{}: {refused}", name.display());
            return new(py, "mismatch", ("differs", message, name, Some(unlike.0.start)));
        }
        Refused::Content(error) | Refused::Unreadable(error) => return of_pass(py, error, name),
        Refused::New => ("other", ": remove the map to begin anew", None),
        Refused::OtherLength { .. } => ("size", "", None),
        Refused::Exists => ("exists", "", Some(EEXIST)),
        Refused::Holds(_) => {
            ("holds", ": force=True overwrites it, update=True writes only what differs", None)
        }
        Refused::Name(kind) if kind.format().is_some() => {
            ("format", ": copy to a qemu-nbd that serves it, or use force=True", None)
        }
        Refused::Name(_) => ("format", ": force=True writes it as it is", None),
        Refused::Empty => ("empty", "", None),
        Refused::Kind | Refused::OtherKind => ("file-type", "", None),
        Refused::Source | Refused::Overlaps | Refused::Other(_) => ("source", "", None),
        Refused::Deallocation => ("zeros", "", None),
        Refused::Removed => ("removed", "", None),
        _ => ("other", "", None),
    };
    let message = format!("{}: {refused}{advice}", name.display());
    new(py, "copy", (kind, message, name, None::<u64>, errno))
}

fn of_log(py: Python<'_>, refused: &Refused, name: &OsStr) -> PyErr {
    let (advice, errno) = match refused {
        Refused::Log(error) => return of_pass(py, error, name),
        Refused::LogFinished => ("", Some(EEXIST)),
        Refused::LogUnfinished => (": resume=True continues the copy", None),
        _ => ("", None),
    };
    let message = format!("{}: {refused}{advice}", name.display());
    new(py, "map", (message, name, None::<u64>, errno))
}

fn of_not_expected(py: Python<'_>, error: &NotExpected, name: &OsStr, map: &OsStr) -> PyErr {
    let (shown, of) = (name.display(), map.display());
    let mismatch = |message: String, offset: Option<u64>| {
        new(py, "mismatch", ("expected", message, name, offset))
    };
    match error {
        NotExpected::Size { size, mapped } => {
            mismatch(format!("{shown}: the source has {size} bytes, and {of} is of {mapped}"), None)
        }
        NotExpected::Differs { bytes, first } => {
            let message =
                format!("{shown}: differs from {of} in {bytes} bytes, the first at {first}");
            mismatch(message, Some(*first))
        }
        NotExpected::Map(error) => of_map(py, error, map),
        NotExpected::Unreadable(error) => of_image(py, error),
        NotExpected::Destination(error) => of_pass(py, error, name),
        error if error.is_of_map() => {
            new(py, "map", (format!("{of}: {error}"), map, None::<u64>, None::<i32>))
        }
        error => {
            new(py, "copy", ("other", format!("{shown}: {error}"), name, None::<u64>, None::<i32>))
        }
    }
}

fn of_copy(py: Python<'_>, error: &blkcopy::Error, name: &OsStr) -> PyErr {
    use blkcopy::Error;
    let shown = format!("{}: {error}", name.display());
    let of_system = |offset: Option<u64>, source: &io::Error| {
        let message = format!("{shown}: {source}");
        new(py, "copy", ("io", message, name, offset, source.raw_os_error()))
    };
    match error {
        Error::Source(error) | Error::ReadBack(error) => of_pass(py, error, name),
        Error::Destination { source, .. } => of_system(None, source),
        Error::Range { offset, source, .. } => of_system(Some(*offset), source),
        Error::Differs { at } => {
            new(py, "mismatch", ("differs", shown, name, at.map(|(offset, _)| offset)))
        }
        Error::Small { .. } => new(py, "copy", ("size", shown, name, None::<u64>, None::<i32>)),
        _ => new(py, "copy", ("other", shown, name, None::<u64>, None::<i32>)),
    }
}

/// Says that the caller cancelled the work.
pub fn cancelled(py: Python<'_>) -> PyErr {
    new(py, "cancelled", ())
}

/// Says that an object cannot be used in this process.
pub fn fork(py: Python<'_>, message: &str) -> PyErr {
    new(py, "fork", (message,))
}

/// Says that something failed that no class of its own describes.
pub fn other(py: Python<'_>, message: &str) -> PyErr {
    new(py, "other", (message,))
}

/// Describes an error without its number, which Python adds.
fn strerror(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Calls a function of `blkhash/_errors.py`, which returns an exception.
fn new<'py>(py: Python<'py>, function: &str, args: impl PyCallArgs<'py>) -> PyErr {
    let made = types::errors(py).and_then(|module| module.getattr(function)?.call1(args));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Returns the word for programs.
fn kind(kind: blkimage::ErrorKind) -> &'static str {
    use blkimage::ErrorKind;
    match kind {
        ErrorKind::Open => "open",
        ErrorKind::Connect => "connect",
        ErrorKind::Io => "io",
        ErrorKind::Directory => "directory",
        ErrorKind::Pipe => "pipe",
        ErrorKind::FileType => "file-type",
        ErrorKind::Format => "format",
        ErrorKind::Corrupt => "corrupt",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Reference => "reference",
        ErrorKind::Server => "server",
        ErrorKind::Snapshot => "snapshot",
        ErrorKind::InUse => "in-use",
        ErrorKind::Changed => "changed",
        ErrorKind::Truncated => "truncated",
        ErrorKind::Holes => "holes",
        ErrorKind::Size => "size",
        ErrorKind::Argument => "argument",
        _ => "other",
    }
}

/// The error of a file that exists.
const EEXIST: i32 = rustix::io::Errno::EXIST.raw_os_error();

/// The error of a path that leads to a directory.
pub const EISDIR: i32 = rustix::io::Errno::ISDIR.raw_os_error();
