//! What is known of an image after it was read, or why it was not.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use blkhash::{Digest, Parameters};
use blkimage::{ErrorKind, Format, Image};

use super::about::About;
use super::program::PROGRAM;
use crate::messages;

/// The checksums of an image, and what else is known after them.
#[derive(Clone, Debug)]
pub struct Report {
    /// The checksums, and what they were computed with.
    pub checksums: Vec<(Parameters, Digest)>,
    /// What the image is.
    pub format: Format,
    /// Size of the guest's content in bytes.
    pub virtual_size: u64,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// What `--verbose` asks for.
    pub about: Option<About>,
}

/// Why an image has no checksum.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What a message says after the name.
    pub reason: String,
    /// What the message may suggest.
    pub cause: Cause,
}

/// Causes of failures that users can do something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No file has that name.
    Missing,
    /// A folder has that name.
    Directory,
    /// Anything else.
    Other,
}

impl Report {
    /// The report of an image that was read, but for the time.
    pub fn new(parameters: &[Parameters], digests: Vec<Digest>, image: &Image) -> Self {
        Self {
            checksums: parameters.iter().copied().zip(digests).collect(),
            format: image.format(),
            virtual_size: image.virtual_size(),
            bytes_read: image.bytes_read(),
            elapsed: Duration::ZERO,
            about: None,
        }
    }

    /// Notes it if conversions of the image have another checksum: QEMU rounds raw images up to sectors.
    /// Returns whether it is so.
    pub fn note_odd_size(&self, name: &OsStr) -> bool {
        let is_odd = self.format == Format::Raw
            && !self.virtual_size.is_multiple_of(SECTOR)
            && self.checksums.iter().any(|(parameters, _)| parameters.construction().has_blocks());
        if is_odd {
            let note = "note: size is not a multiple of 512 bytes: its qcow2 conversion has another \
                        checksum";
            messages::remark_of(PROGRAM, name.as_bytes(), note);
        }
        is_odd
    }
}

impl Failure {
    /// A failure with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), cause: Cause::Other }
    }

    /// Why there is no checksum of the image `name`.
    pub fn of_checksum(error: blksum::Error, name: &OsStr) -> Self {
        match error {
            blksum::Error::Image(error) => Self::of_image(&error, name),
            blksum::Error::Stream(error) => Self::from(&error),
            error @ blksum::Error::Zeros { .. } => Self::new(format!("{error}{MORE_ZEROS}")),
            other => Self::new(other.to_string()),
        }
    }

    /// An error of the image reader, for a message that begins with the image's name.
    pub fn of_image(error: &blkimage::Error, name: &OsStr) -> Self {
        let is_own = error.name() == Path::new(name);
        if error.kind() == ErrorKind::Directory && is_own {
            return Self { reason: "Is a directory".into(), cause: Cause::Directory };
        }
        let mut failure = match (error.kind(), error.io_error()) {
            (ErrorKind::Open, Some(source)) if is_own => Self::from(source),
            _ => Self::new(reason(error, is_own)),
        };
        failure.reason += advice(error);
        failure
    }
}

impl From<&io::Error> for Failure {
    fn from(error: &io::Error) -> Self {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        let cause = if is_missing { Cause::Missing } else { Cause::Other };
        Self { reason: messages::reason(error), cause }
    }
}

fn reason(error: &blkimage::Error, is_own: bool) -> String {
    let mut reason = error.to_string();
    if is_own {
        reason = error.reason().to_owned();
        if let Some(offset) = error.offset() {
            reason += &format!(" (offset {offset})");
        }
    }
    if let Some(source) = error.io_error() {
        reason += &format!(": {}", messages::reason(source));
    }
    reason
}

/// What to do about an error of the image reader.
fn advice(error: &blkimage::Error) -> &'static str {
    let is_denied =
        error.io_error().is_some_and(|source| source.kind() == io::ErrorKind::PermissionDenied);
    match error.kind() {
        ErrorKind::Size => MORE_ZEROS,
        ErrorKind::Server if is_denied => DENIED_PROGRAM,
        ErrorKind::Open if is_denied && is_permitted(error.name()) => DENIED_FILE,
        _ => "",
    }
}

/// Whether the file may be read as far as its permissions go. The sandbox is not asked.
fn is_permitted(path: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS).is_ok()
}

const DENIED_FILE: &str = ", by the sandbox: --verbose shows what it allows, --no-sandbox lifts it";

const DENIED_PROGRAM: &str =
    ": if it is executable, the sandbox is in the way: name the program with --nbd-server=PROGRAM";

/// What to do about a limit.
const MORE_ZEROS: &str = ": --max-zeros=SIZE allows more";

const SECTOR: u64 = 512;
