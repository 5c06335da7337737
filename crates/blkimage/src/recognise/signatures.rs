//! How the content of files that are no raw disks begins.

use crate::compression::Compression;
use crate::tar::is_tar;

/// The beginning of content.
pub(super) enum Signature {
    /// These bytes.
    Bytes(&'static [u8]),
    /// Content for which this returns true.
    Test(fn(&[u8]) -> bool),
}

impl Signature {
    /// Returns whether content begins so.
    pub fn matches(&self, head: &[u8]) -> bool {
        match self {
            Self::Bytes(bytes) => head.starts_with(bytes),
            Self::Test(test) => test(head),
        }
    }
}

/// Returns the compression of content.
///
/// Looks at more than the magic, which random data has once in 16 million disks.
pub(super) fn compression(head: &[u8]) -> Option<Compression> {
    Compression::of_head(head).filter(|found| match found {
        // Reserved flags are zero.
        Compression::Gzip => head.get(3).is_some_and(|flags| flags & 0xe0 == 0),
        _ => true,
    })
}

pub(super) fn is_tar_archive(head: &[u8]) -> bool {
    head.get(..512).is_some_and(is_tar)
}

/// Returns whether this is the archive that XenServer exports: its first member describes the machine.
pub(super) fn is_xva(head: &[u8]) -> bool {
    head.starts_with(b"ova.xml\0") && is_tar_archive(head)
}

/// Returns whether this is a cpio archive in one of the forms in ASCII: a header of digits.
pub(super) fn is_cpio(head: &[u8]) -> bool {
    let has_digits = |length: usize, is_digit: fn(&u8) -> bool| {
        head.get(6..length).is_some_and(|digits| digits.iter().all(is_digit))
    };
    match head.get(..6) {
        Some(b"070701" | b"070702") => has_digits(110, u8::is_ascii_hexdigit),
        Some(b"070707") => has_digits(76, |byte| matches!(byte, b'0'..=b'7')),
        _ => false,
    }
}

/// Returns whether this begins like the first record of a stream: its magic in either byte order.
pub(super) fn is_zfs_stream(head: &[u8]) -> bool {
    let is_begin = head.starts_with(&[0; 4]);
    is_begin && matches!(head.get(8..16), Some(MAGIC_LE | MAGIC_BE))
}

const MAGIC_LE: &[u8] = &[0xac, 0xcb, 0xba, 0xf5, 2, 0, 0, 0];
const MAGIC_BE: &[u8] = &[0, 0, 0, 2, 0xf5, 0xba, 0xcb, 0xac];

/// Returns whether this begins like a disk with partitions or a file system, as some files with the name of a dmg image.
pub(super) fn is_disk_of_apple(head: &[u8]) -> bool {
    let at = |offset: usize, magic: &[u8]| {
        head.get(offset..).is_some_and(|found| found.starts_with(magic))
    };
    let tables = at(0, b"ER") || at(510, b"\x55\xaa") || at(512, b"EFI PART");
    tables || at(32, b"NXSB") || [&b"H+\0"[..], b"HX\0", b"BD"].iter().any(|magic| at(1024, magic))
}
