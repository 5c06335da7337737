//! What is known of an image after it was read, or why it was not.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use blkhash::{Digest, Parameters};
use blkimage::{ErrorKind, Format, Image};

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
}

/// Why an image has no checksum.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What a message says after the name.
    pub reason: String,
    /// There is no file of that name.
    pub is_missing: bool,
}

/// Whether what a user should know of an image is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notes {
    /// Warnings and remarks.
    Printed,
    /// Only warnings.
    WarningsOnly,
    /// Nothing.
    Silent,
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
        }
    }

    /// QEMU rounds raw images up to sectors: their conversions have another content.
    pub fn note_odd_size(&self, name: &OsStr, notes: Notes) {
        if notes == Notes::Printed
            && self.format == Format::Raw
            && !self.virtual_size.is_multiple_of(SECTOR)
            && self.checksums.iter().any(|(parameters, _)| parameters.construction().has_blocks())
        {
            messages::remark_of(
                PROGRAM,
                name.as_bytes(),
                "note: size is not a multiple of 512 bytes: its qcow2 conversion has another \
                 checksum",
            );
        }
    }
}

impl Failure {
    /// A failure with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_missing: false }
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

    /// What the image reader said of the image `name`, which the message says anyway.
    pub fn of_image(error: &blkimage::Error, name: &OsStr) -> Self {
        let is_own = error.name() == Path::new(name);
        match (error.kind(), error.io_error()) {
            (ErrorKind::Open, Some(source)) if is_own => return Self::from(source),
            (ErrorKind::Directory, _) if is_own => return Self::new("Is a directory"),
            _ => {}
        }
        let mut reason = error.to_string();
        if is_own {
            reason = error.reason().to_owned();
            if let Some(offset) = error.offset() {
                reason += &format!(" (offset {offset})");
            }
        }
        if error.kind() == ErrorKind::Size {
            reason += MORE_ZEROS;
        }
        if let Some(source) = error.io_error() {
            reason += &format!(": {}", messages::reason(source));
        }
        Self::new(reason)
    }
}

impl From<&io::Error> for Failure {
    fn from(error: &io::Error) -> Self {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        Self { reason: messages::reason(error), is_missing }
    }
}

/// What to do about a limit.
const MORE_ZEROS: &str = ": --max-zeros=SIZE allows more";

const SECTOR: u64 = 512;
