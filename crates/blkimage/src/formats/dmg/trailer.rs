//! The trailer of a file (`koly`), its last sector. Numbers are in big-endian order.

use std::ops::Range;

use super::sum::Sum;
use crate::error::{ErrorKind, Result};
use crate::formats::fields::{Head, check_inside};
use crate::hint::Hint;
use crate::recognise::way::Way;
use crate::storage::HostFile;

/// The trailer of a file.
pub(super) struct Trailer {
    /// The bytes that hold the content, in the file.
    pub data: Range<u64>,
    /// The resource fork, as files of Mac OS X before 10.2 have it. Empty if there is none.
    pub fork: Range<u64>,
    /// The property list. Empty if there is none.
    pub plist: Range<u64>,
    /// Number of sectors of content.
    pub sectors: u64,
    /// The checksum of the bytes of `data`.
    pub data_sum: Sum,
    /// The checksum of the checksums of all tables.
    pub master_sum: Sum,
}

impl Trailer {
    pub fn read(file: &HostFile) -> Result<Self> {
        let Some(at) = file.size().checked_sub(SIZE as u64) else { return Err(no_trailer(file)) };
        let head = Head::read(file, at, SIZE)?;
        if !head.starts_with(b"koly") {
            return Err(no_trailer(file));
        }
        // QEMU takes the first one that it finds in the last bytes.
        let before = at.min(SIZE as u64 - 1);
        let end = Head::read(file, at - before, before as usize + 3)?;
        if end.bytes().windows(4).any(|bytes| bytes == b"koly") {
            return Err(file.corrupt("has another trailer close before its last one").at(at));
        }
        let (version, size) = (head.be32(4), head.be32(8));
        if version != 4 || size != SIZE as u32 {
            let reason = format!(
                "is a dmg image of version {version} with {size} bytes of trailer, which is not known"
            );
            return Err(file.error(ErrorKind::Unsupported, reason).at(at + 4));
        }
        let (segment, segments) = (head.be32(56), head.be32(60));
        if segments > 1 {
            let reason = format!("is segment {segment} of {segments} of a dmg image");
            return Err(file.error(ErrorKind::Unsupported, reason).with_hint(CONVERT).at(at + 56));
        }
        let range = |offset: usize, what: &str| {
            let (start, length) = (head.be64(offset), head.be64(offset + 8));
            check_inside(file, start, length, what)?;
            Ok(start..start + length)
        };
        Ok(Self {
            data: range(24, "data fork")?,
            fork: range(40, "resource fork")?,
            plist: range(216, "property list")?,
            sectors: head.be64(492),
            data_sum: Sum::read(&head.bytes()[80..]),
            master_sum: Sum::read(&head.bytes()[352..]),
        })
    }
}

/// The error for a file that does not end with a trailer.
fn no_trailer(file: &HostFile) -> crate::Error {
    let starts = |magic: &[u8]| file.read_head(magic.len()).is_ok_and(|head| head == magic);
    let ends = || {
        let mut end = [0; 8];
        let at = file.size().saturating_sub(end.len() as u64);
        file.read_exact_at(&mut end, at).is_ok() && end == *b"cdsaencr"
    };
    if starts(b"encrcdsa") || ends() {
        return file.error(ErrorKind::Unsupported, "is an encrypted dmg image").with_hint(CONVERT);
    }
    file.error(ErrorKind::Format, "is not a dmg image")
}

/// Size of the trailer in bytes.
const SIZE: usize = 512;

const CONVERT: Hint = Hint::NoDisk {
    way: Way::Command("hdiutil convert FILE -format UDTO -o OUTPUT"),
    compression: None,
};
