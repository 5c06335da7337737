//! Files that look compressed as a whole and are not decompressed, because their name or the options do not say so. Their
//! checksum is of the compressed bytes.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use blkimage::{Compression, Format};
use rustix::fs::{Mode, OFlags};

use super::input;
use super::report::Report;
use crate::messages;

/// Prints a note if the image was read as raw and has the name of a tar archive, in which its disk may be.
pub fn note_archive(name: &OsStr, report: &Report) {
    let lower = name.to_ascii_lowercase();
    let is_tar = |path: &Path| path.extension().is_some_and(|it| it == "tar" || it == "tgz");
    let path = Path::new(&lower);
    let is_named = is_tar(path)
        || (Compression::of_name(path).is_some()
            && path.file_stem().is_some_and(|it| is_tar(Path::new(it))));
    if report.format == Format::Raw && is_named && name != "-" && !input::is_uri(name) {
        let note = "note: has the name of a tar archive: the checksum is of the archive, and not of a disk in it";
        messages::remark_of(name.as_bytes(), note);
    }
}

/// Prints a note if the image was read as raw and is a compressed file.
pub fn note(name: &OsStr, report: &Report) {
    if report.format != Format::Raw || report.is_decompressed {
        return;
    }
    let found = match report.stream {
        Some((_, method)) => method,
        None => of_file(name),
    };
    if let Some(method) = found {
        let note = format!(
            "note: looks like {method}: the checksum is of the compressed bytes: -f {method} hashes the content"
        );
        messages::remark_of(name.as_bytes(), &note);
    }
}

/// Returns the method of a regular file. The file may have been replaced since, and opening it must not block.
fn of_file(name: &OsStr) -> Option<Compression> {
    if name == "-" || input::is_uri(name) {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(name, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut head = [0; Compression::HEAD_SIZE];
    file.read_exact_at(&mut head, 0).ok()?;
    Compression::of_head(&head)
}
