//! The check file that an image is of its own content.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blkhash::Algorithm;
use blkimage::{ErrorKind, Format, StatedDigest, detect};
use blksum::check_file::{Form, Style};
use blksum::{Encoding, Tag};

use super::settings::Settings;
use crate::image::advice;

/// An image that is checked without a line.
#[derive(Clone, Debug)]
pub enum SelfCheck {
    /// By reading it, because its parts have checksums.
    Parts(OsString),
    /// Against the MD5 that an image of ISO 9660 states of it.
    Implanted(OsString),
    /// Against the CRC-32 that an Apple disk image states of its parts.
    Sums(OsString),
}

/// Returns the lines of the checksums that the image at `path` states of its content. If it has no digests of all of it, there
/// are none, and the image is checked in another way.
pub fn lines(path: &Path, settings: &Settings) -> io::Result<(Vec<u8>, Option<SelfCheck>)> {
    if settings.part.is_some() || settings.open.snapshot.is_some() {
        return Err(io::Error::other(WHOLE_CONTENT));
    }
    let options = settings.open.clone().format(None);
    let stated = options.stated_checksums(path);
    let stated = stated.map_err(|error| io_error(&error, error.name() == path))?;
    let stated = stated.ok_or_else(|| {
        let is_iso = detect(path).is_ok_and(|format| format == Format::Raw);
        io::Error::other(if is_iso { NO_IMPLANTED } else { NOTHING })
    })?;
    if stated.implanted.is_some() {
        return Ok((Vec::new(), Some(SelfCheck::Implanted(path.into()))));
    }
    if !stated.sums.is_empty() {
        return Ok((Vec::new(), Some(SelfCheck::Sums(path.into()))));
    }
    if stated.unknown_sums > 0 {
        return Err(io::Error::other(UNKNOWN_SUMS));
    }
    let mut lines = Vec::new();
    for stated in &stated.digests {
        lines.extend(line(path, stated).ok_or_else(|| io::Error::other(NOTHING))?);
    }
    match (lines.is_empty(), stated.parts) {
        (true, None) => Err(io::Error::other(NOTHING)),
        (true, Some(_)) => Ok((lines, Some(SelfCheck::Parts(path.into())))),
        (false, _) => Ok((lines, None)),
    }
}

/// Returns the line of a digest. `None` if its algorithm is not known.
fn line(path: &Path, stated: &StatedDigest) -> Option<Vec<u8>> {
    let algorithm: Algorithm = stated.algorithm.parse().ok()?;
    let form = Form::Tagged(Tag::from(Tag::linear(algorithm)));
    let style = Style { form, encoding: Encoding::Hex, zero: false };
    Some(style.line(path.as_os_str().as_bytes(), &stated.digest))
}

/// Converts an error of an image that stands for a check file. `is_own`: the error is about that file.
pub fn io_error(error: &blkimage::Error, is_own: bool) -> io::Error {
    match error.io_error().map(io::Error::raw_os_error) {
        // That of another file, which an image names, is the source of a longer reason.
        Some(Some(code)) if error.kind() != ErrorKind::Reference => {
            io::Error::from_raw_os_error(code)
        }
        _ => io::Error::other(advice::reason(error, is_own)),
    }
}

const WHOLE_CONTENT: &str = "its checksums are of all of its content: leave out --partition, --offset, --length and \
                             --snapshot";

const NOTHING: &str = "is an image that states no checksum of its content";

const UNKNOWN_SUMS: &str =
    "is an image that states checksums of other types than CRC-32, which are not known";

const NO_IMPLANTED: &str = "is an image of ISO 9660 that states no MD5 of itself, as implantisomd5 writes it: compare it with a published checksum";
