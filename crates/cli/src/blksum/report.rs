//! The result of hashing an image, or the reason why it failed.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use blkhash::{Digest, Parameters};
use blkimage::{ErrorKind, Format, Image};
use blksum::expect::Shape;

use super::about::About;
use crate::image::advice;
use crate::messages;

/// The checksums of an image, with its properties.
#[derive(Clone, Debug)]
pub struct Report {
    /// Checksums with their parameters.
    pub checksums: Vec<(Parameters, Digest)>,
    /// Format of the image.
    pub format: Format,
    /// Whether the content is in several files.
    pub has_other_files: bool,
    /// Whether a vpc image is in the chain.
    pub has_vpc: bool,
    /// Format and compression that the bytes of a stream look like. `None` for everything else.
    pub stream: Option<(Format, Option<&'static str>)>,
    /// What the ends of the content tell, in a search.
    pub shape: Option<Shape>,
    /// Size of the guest's content in bytes.
    pub virtual_size: u64,
    /// Number of bytes that were read.
    pub bytes_read: u64,
    /// Time that opening and hashing took.
    pub elapsed: Duration,
    /// Description of the image, with `--verbose`.
    pub about: Option<About>,
}

/// The reason why an image has no checksum.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Text of the message after the name of the image.
    pub reason: String,
    /// Cause, which selects the hint for the user.
    pub cause: Cause,
}

/// Causes of failures for which there are hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The file does not exist.
    Missing,
    /// The name is that of a folder.
    Directory,
    /// Anything else.
    Other,
}

impl Report {
    /// Creates the report of an image that was read. Its time is zero until it is set.
    pub fn new(parameters: &[Parameters], digests: Vec<Digest>, image: &Image) -> Self {
        Self {
            checksums: parameters.iter().copied().zip(digests).collect(),
            format: image.format(),
            has_other_files: image.files().nth(1).is_some(),
            has_vpc: image.chain().iter().any(|member| member.format() == Format::Vpc),
            stream: None,
            shape: None,
            virtual_size: image.virtual_size(),
            bytes_read: image.bytes_read(),
            elapsed: Duration::ZERO,
            about: None,
        }
    }

    /// Prints a note if a conversion of the image has another checksum, because QEMU rounds the size of
    /// raw images up to sectors. Returns whether the note was printed.
    pub fn note_odd_size(&self, name: &OsStr) -> bool {
        let is_odd = self.format == Format::Raw
            && !self.virtual_size.is_multiple_of(SECTOR)
            && self.checksums.iter().any(|(parameters, _)| parameters.construction().has_blocks());
        if is_odd {
            let note = "note: size is not a multiple of 512 bytes: its qcow2 conversion has another \
                        checksum";
            messages::remark_of(name.as_bytes(), note);
        }
        is_odd
    }

    /// Prints a note if the image was read as raw and has the name of another format. Its header or footer may be lost.
    pub fn note_other_format(&self, name: &OsStr) {
        if self.format != Format::Raw {
            return;
        }
        if let Some(format) = format_of_name(name) {
            let note =
                format!("note: is read as raw: nothing in it says that it is a {format} image");
            messages::remark_of(name.as_bytes(), &note);
        }
    }
}

/// Returns the format that the end of a name stands for. Flat extents of a vmdk are raw.
fn format_of_name(name: &OsStr) -> Option<&'static str> {
    let name = Path::new(name);
    let extension = name.extension()?;
    let known = ["dmg", "qcow", "qcow2", "qed", "vdi", "vhd", "vhdx", "vmdk"];
    let format = known.into_iter().find(|known| extension.eq_ignore_ascii_case(known))?;
    let stem = name.file_stem()?.as_bytes();
    let is_extent = stem.rsplit(|byte| *byte == b'-').next().is_some_and(|last| {
        last == b"flat"
            || last.strip_prefix(b"f").is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
    });
    (format != "vmdk" || !is_extent).then_some(format)
}

impl Failure {
    /// Creates a failure with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), cause: Cause::Other }
    }

    /// Converts an error of hashing the image `name`.
    pub fn of_checksum(error: blksum::Error, name: &OsStr) -> Self {
        match error {
            blksum::Error::Image(error) => Self::of_image(&error, name),
            blksum::Error::Stream(error) => Self::from(&error),
            blksum::Error::Hash(error) => Self::new(format!("{error}{}", advice_on_hash(&error))),
            other => Self::new(advice::with_advice(other.to_string(), advice::of_pass(&other))),
        }
    }

    /// Converts an error of blkimage, for a message that begins with the name of the image.
    pub fn of_image(error: &blkimage::Error, name: &OsStr) -> Self {
        let is_own = error.name() == Path::new(name);
        let is_missing = error.io_error().is_some_and(|it| it.kind() == io::ErrorKind::NotFound);
        let cause = match error.kind() {
            ErrorKind::Directory if is_own => Cause::Directory,
            ErrorKind::Open if is_own && is_missing => Cause::Missing,
            _ => Cause::Other,
        };
        Self { reason: advice::describe(error, name), cause }
    }
}

impl From<&io::Error> for Failure {
    fn from(error: &io::Error) -> Self {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        let cause = if is_missing { Cause::Missing } else { Cause::Other };
        Self { reason: messages::reason(error), cause }
    }
}

/// Returns what to do about an error of blkhash. It is empty if there is nothing.
fn advice_on_hash(error: &blkhash::Error) -> String {
    let blkhash::Error::UnsuitableLength { length, block_size } = *error else {
        return String::new();
    };
    match length - length % block_size {
        0 => ": fs-verity takes any size".into(),
        whole => format!(": fs-verity takes any size, and --length {whole} leaves out the rest"),
    }
}

const SECTOR: u64 = 512;
