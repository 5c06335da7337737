//! The reason why a call failed, made of the errors of the crates.

use std::ffi::{OsStr, c_int};
use std::fmt::Display;
use std::io;

use blkimage::partition::{NoPartition, TableError};
use blkimage::{ErrorKind, Hint, OpenOption};
use blksum::PartError;

/// `enum blksum_error_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Kind {
    Argument = 1,
    Fork = 2,
    Cancelled = 3,
    Internal = 4,
    Open = 10,
    Io = 11,
    Connect = 12,
    Server = 13,
    FileType = 14,
    Format = 15,
    Corrupt = 16,
    Truncated = 17,
    Unsupported = 18,
    Reference = 19,
    Part = 20,
    InUse = 21,
    Changed = 22,
    Size = 23,
    Map = 40,
    MapIncomplete = 41,
    MapMismatch = 42,
    MapSeal = 43,
    Limit = 44,
    Other = 99,
}

/// The reason why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    pub(crate) errno: c_int,
    pub(crate) offset: Option<u64>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), errno: 0, offset: None }
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(Kind::Argument, message)
    }

    pub(crate) fn internal() -> Self {
        Self::new(Kind::Internal, "the library has a bug, which it reported on standard error")
    }

    /// Describes an error of the system.
    pub(crate) fn of_system(kind: Kind, name: &OsStr, error: &io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or(0);
        Self { errno, ..Self::new(kind, format!("{}: {error}", name.display())) }
    }

    /// Describes an error of an image.
    pub(crate) fn of_image(error: &blkimage::Error) -> Self {
        let mut message = error.to_string();
        if let Some(source) = error.io_error() {
            message += &format!(": {source}");
        }
        if let Some(advice) = error.hint().map(advice) {
            message += &format!(": {advice}");
        }
        let errno = match error.kind() {
            ErrorKind::Directory => EISDIR,
            _ => error.io_error().and_then(io::Error::raw_os_error).unwrap_or(0),
        };
        let kind = match error.kind() {
            ErrorKind::Open => Kind::Open,
            ErrorKind::Connect => Kind::Connect,
            ErrorKind::Io | ErrorKind::Holes => Kind::Io,
            ErrorKind::Directory | ErrorKind::Pipe | ErrorKind::FileType => Kind::FileType,
            ErrorKind::Format => Kind::Format,
            ErrorKind::Corrupt => Kind::Corrupt,
            ErrorKind::Unsupported => Kind::Unsupported,
            ErrorKind::Reference => Kind::Reference,
            ErrorKind::Server => Kind::Server,
            ErrorKind::Snapshot => Kind::Part,
            ErrorKind::InUse => Kind::InUse,
            ErrorKind::Changed => Kind::Changed,
            ErrorKind::Truncated => Kind::Truncated,
            ErrorKind::Size => Kind::Size,
            ErrorKind::Argument => Kind::Argument,
            _ => Kind::Other,
        };
        Self { errno, offset: error.offset(), ..Self::new(kind, message) }
    }

    /// Describes why an image does not have a part.
    pub(crate) fn of_part(error: &PartError, name: &OsStr) -> Self {
        match error {
            PartError::Partition(NoPartition::Table(TableError::Image(error))) => {
                Self::of_image(error)
            }
            error => Self::new(Kind::Part, format!("{}: {error}", name.display())),
        }
    }

    /// Describes an error of the map with this name.
    pub(crate) fn of_map(error: &blkmap::Error, name: &OsStr) -> Self {
        use blkmap::Error;
        let (kind, offset) = match error {
            Error::Io(error) => {
                let is_missing = error.kind() == io::ErrorKind::NotFound;
                let kind = if is_missing { Kind::Open } else { Kind::Io };
                return Self::of_system(kind, name, error);
            }
            Error::Damaged { offset, .. } => (Kind::Map, Some(*offset)),
            Error::Incomplete { .. } => (Kind::MapIncomplete, None),
            Error::Mismatch(_) => (Kind::MapMismatch, None),
            Error::Seal(_) | Error::Sealed => (Kind::MapSeal, None),
            Error::Unsupported(_) => (Kind::Unsupported, None),
            _ => (Kind::Map, None),
        };
        Self { offset, ..Self::new(kind, format!("{}: {error}", name.display())) }
    }

    /// Describes why file systems cannot be verified.
    pub(crate) fn of_btrfs(unverified: &blkbtrfs::Unverified) -> Self {
        use blkbtrfs::Error;
        let kind = match &unverified.error {
            Error::Image(error) => return Self::of_image(error),
            Error::Cancelled => Kind::Cancelled,
            Error::NotBtrfs { .. } => Kind::Format,
            Error::Superblock { .. } | Error::Corrupt { .. } | Error::Part { .. } => Kind::Corrupt,
            Error::Unsupported(_) => Kind::Unsupported,
            Error::Devices(_) => Kind::Argument,
            _ => Kind::Other,
        };
        Self::new(kind, unverified.to_string())
    }

    /// Describes why the image with this name cannot be checked.
    pub(crate) fn of_check(error: &blkcheck::Error, name: &OsStr) -> Self {
        match error {
            blkcheck::Error::Image(error) => Self::of_image(error),
            blkcheck::Error::Cancelled => Self::new(Kind::Cancelled, "cancelled"),
            error => Self::new(Kind::Other, format!("{}: {error}", name.display())),
        }
    }

    /// Describes an error of a pass over the image with the first name, whose map has the other one.
    pub(crate) fn of_pass(error: &blksum::Error, image: &OsStr, map: &OsStr) -> Self {
        use blksum::Error;
        let about = |kind, name: &OsStr, error: &dyn Display| {
            Self::new(kind, format!("{}: {error}", name.display()))
        };
        match error {
            Error::Image(error) => Self::of_image(error),
            Error::Part(error) => Self::of_part(error, image),
            Error::Map(error) => Self::of_map(error, map),
            Error::OtherPart(_) => about(Kind::MapMismatch, map, error),
            Error::Zeros { .. } => {
                let advice = advice(Hint::MaxZeros);
                let message = format!("{}: {error}: {advice}", image.display());
                Self::new(Kind::Size, message)
            }
            Error::Hash(_) => about(Kind::Argument, image, error),
            Error::Cancelled => Self::new(Kind::Cancelled, "cancelled"),
            error => about(Kind::Other, image, error),
        }
    }
}

/// Describes which option helps.
pub(crate) fn advice(hint: Hint) -> String {
    hint.describe(say, |way| way.describe("FILE"))
}

/// Writes an option, as for `blksum_opts_set()`.
fn say(option: OpenOption, value: Option<&str>) -> String {
    let name = option.name();
    match value {
        Some(value) => format!("the option {name}={value}"),
        None => format!("the option {name}"),
    }
}

/// The error of a path that leads to a directory.
const EISDIR: c_int = rustix::io::Errno::ISDIR.raw_os_error();
