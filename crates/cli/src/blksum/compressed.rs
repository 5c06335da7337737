//! Files that are compressed as a whole, such as `disk.raw.gz`. Their checksum is of the compressed bytes.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

use blkimage::Format;
use rustix::fs::{Mode, OFlags};

use super::input;
use super::report::Report;
use crate::messages;

/// Prints a note if the image was read as raw and is a compressed file.
pub fn note(name: &OsStr, report: &Report) {
    if report.format != Format::Raw {
        return;
    }
    let found = match report.stream {
        Some((_, method)) => method,
        None => of_file(name),
    };
    if let Some(method) = found {
        let note = format!(
            "note: looks like {method}: the checksum is of the compressed bytes: {method} -dc FILE | \
             blksum hashes the content"
        );
        messages::remark_of(name.as_bytes(), &note);
    }
}

/// Returns the name of the program that compresses files that begin with `head`.
pub fn method(head: &[u8]) -> Option<&'static str> {
    let starts = |magic: &[u8]| head.starts_with(magic);
    match () {
        () if starts(b"\x1f\x8b\x08") => Some("gzip"),
        () if starts(b"\xfd7zXZ\0") => Some("xz"),
        () if starts(b"\x28\xb5\x2f\xfd") => Some("zstd"),
        () if starts(b"BZh") && head.get(4..10) == Some(b"1AY&SY") => Some("bzip2"),
        () if starts(b"\x04\x22\x4d\x18") => Some("lz4"),
        () => None,
    }
}

/// Returns the method of a regular file. The file may have been replaced since, and opening it must not block.
fn of_file(name: &OsStr) -> Option<&'static str> {
    if name == "-" || input::is_uri(name) {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(name, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut head = [0; HEAD_SIZE];
    file.read_exact_at(&mut head, 0).ok()?;
    method(&head)
}

/// Number of bytes that [`method`] examines. No compressed file is shorter.
const HEAD_SIZE: usize = 10;

#[cfg(test)]
mod tests {
    #[test]
    fn methods() {
        let known: [(&[u8], Option<&str>); 7] = [
            (b"\x1f\x8b\x08\0\0\0\0\0\0\0", Some("gzip")),
            (b"\xfd7zXZ\0\0\x04", Some("xz")),
            (b"\x28\xb5\x2f\xfd\x04", Some("zstd")),
            (b"BZh91AY&SY", Some("bzip2")),
            (b"\x04\x22\x4d\x18", Some("lz4")),
            (b"BZh9 is how a text may begin", None),
            (b"", None),
        ];
        for (head, method) in known {
            assert_eq!(super::method(head), method);
        }
    }
}
