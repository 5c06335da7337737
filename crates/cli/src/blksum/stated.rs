//! The check file that an image is of its own content.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blkhash::Algorithm;
use blkimage::{ErrorKind, Format, Image, Location, StatedDigest};
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

/// Returns the lines of the checksums that the image `name` states of its content. If it has no digests of all of it, there are
/// none, and the image is checked in another way.
pub fn lines(name: &OsStr, settings: &Settings) -> io::Result<(Vec<u8>, Option<SelfCheck>)> {
    let image = settings.open.clone().format(None).open_location(Location::new(name));
    let image = image.map_err(|error| io_error(&error, error.name() == Path::new(name)))?;
    of_image(&image, name, settings)
}

/// Returns the same of an image that is open.
pub fn of_image(
    image: &Image,
    name: &OsStr,
    settings: &Settings,
) -> io::Result<(Vec<u8>, Option<SelfCheck>)> {
    if settings.part.is_some() || settings.open.snapshot.is_some() {
        return Err(io::Error::other(WHOLE_CONTENT));
    }
    let stated = image.stated_checksums();
    let stated = stated.map_err(|error| io_error(&error, error.name() == Path::new(name)))?;
    let stated = stated.ok_or_else(|| {
        io::Error::other(match image.format() {
            _ if image.is_decompressed() => NOTHING_COMPRESSED,
            Format::Raw => NO_IMPLANTED,
            _ => NOTHING,
        })
    })?;
    if stated.implanted.is_some() {
        return Ok((Vec::new(), Some(SelfCheck::Implanted(name.into()))));
    }
    if !stated.sums.is_empty() {
        return Ok((Vec::new(), Some(SelfCheck::Sums(name.into()))));
    }
    if stated.unknown_sums > 0 {
        return Err(io::Error::other(UNKNOWN_SUMS));
    }
    let mut lines = Vec::new();
    for stated in &stated.digests {
        lines.extend(line(name, stated).ok_or_else(|| io::Error::other(NOTHING))?);
    }
    match (lines.is_empty(), stated.parts) {
        (true, None) => Err(io::Error::other(NOTHING)),
        (true, Some(_)) => Ok((lines, Some(SelfCheck::Parts(name.into())))),
        (false, _) => Ok((lines, None)),
    }
}

/// Returns the line of a digest. `None` if its algorithm is not known.
fn line(name: &OsStr, stated: &StatedDigest) -> Option<Vec<u8>> {
    let algorithm: Algorithm = stated.algorithm.parse().ok()?;
    let form = Form::Tagged(Tag::from(Tag::linear(algorithm)));
    let style = Style { form, encoding: Encoding::Hex, zero: false };
    Some(style.line(name.as_bytes(), &stated.digest))
}

/// Converts an error of an image that stands for a check file. `is_own`: the error is about that file.
pub fn io_error(error: &blkimage::Error, is_own: bool) -> io::Error {
    match error.io_error().map(io::Error::raw_os_error) {
        // The size of another file, which an image names, is the source of a longer reason.
        Some(Some(code)) if error.kind() != ErrorKind::Reference => {
            io::Error::from_raw_os_error(code)
        }
        _ => io::Error::other(advice::reason(error, is_own)),
    }
}

const WHOLE_CONTENT: &str = "its checksums are of all of its content: leave out --partition, --offset, --length and \
                             --snapshot";

const NOTHING: &str = "is an image that states no checksum of its content";

const NOTHING_COMPRESSED: &str = "is compressed, and states no checksum of its content: decompress a list of checksums and use a pipe";

const UNKNOWN_SUMS: &str =
    "is an image that states checksums of other types than CRC-32, which are not known";

const NO_IMPLANTED: &str = "is an image of ISO 9660 that states no MD5 of itself, as implantisomd5 writes it: compare it with a published checksum";
