//! Which images are hashed ahead of their turn, side by side, and how.
//!
//! Those are small raw files: one thread is all that they have work for, they name no other file, and
//! no more than one descriptor is open for each. Everything else, and whatever goes wrong, is done in
//! its turn by [`Job::checksums`](super::hash::Job::checksums), as if it had not been tried before: every message
//! but that there is no such file comes from there.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use blkimage::{Compression, Format, HEAD_SIZE, Image, OpenOptions, Source};
use blkimage::{check_raw, container_of, detect_within, is_container};
use blksum::{Progress, Tuning};

use super::report::Report;
use super::settings::{Meaning, Settings};
use crate::image::input;
use crate::problem::Problem;

/// Hashes small images.
pub struct Small {
    threads: usize,
    /// One thread for each.
    tuning: Tuning,
    /// Device and inode of what this process writes to: a file among the images that every line
    /// changes.
    written: Vec<(u64, u64)>,
}

impl Small {
    /// For a run with these settings.
    pub fn new(settings: &Settings) -> Self {
        let outputs = [metadata(io::stdout()), metadata(io::stderr())];
        Self {
            threads: if settings.verbose { 1 } else { settings.tuning.threads },
            tuning: settings.tuning.with_threads(1),
            written: outputs.iter().flatten().map(identity).collect(),
        }
    }

    /// Returns the maximum number of them that are hashed at a time.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The checksums of what `name` stands for, if that is a small raw file and nothing goes wrong. That
    /// there is nothing of this name is an answer, too.
    pub fn checksums(
        &self,
        name: &OsStr,
        meaning: &Meaning<'_>,
    ) -> Option<Result<Report, Problem>> {
        let started = Instant::now();
        let Meaning { parameters, open, part, .. } = meaning;
        let is_detected = open.format.is_none();
        let is_raw = is_detected || open.format == Some(Format::Raw);
        if name == "-" || input::is_uri(name) || !is_raw || part.is_some() {
            return None;
        }
        let path = Path::new(name);
        let is_compressed = open.compression.is_some();
        if is_compressed || container_of(path).is_some() || is_detected && is_container(path) {
            return None;
        }
        let file = match fs::metadata(path) {
            Ok(file) => file,
            Err(error) => {
                let is_missing = error.kind() == io::ErrorKind::NotFound;
                return is_missing.then(|| Err(Problem::from(&error)));
            }
        };
        // What claims to be empty may be made up as it is read, and reading may wait for something.
        let is_small = file.is_file() && (1..=MAX_SIZE).contains(&file.len());
        if !is_small || self.written.contains(&identity(&file)) {
            return None;
        }
        let image = OpenOptions::clone(open).format(Format::Raw).open(path).ok()?;
        if is_detected && !is_raw_disk(&image, path) {
            return None;
        }
        if image.virtual_size() > MAX_SIZE || !image.warnings().is_empty() {
            return None;
        }
        let digests = blksum::checksums(&image, parameters, &self.tuning, &Progress::new()).ok()?;
        Some(Ok(Report { elapsed: started.elapsed(), ..Report::new(parameters, digests, &image) }))
    }
}

fn metadata(file: impl AsFd) -> io::Result<Metadata> {
    File::from(file.as_fd().try_clone_to_owned()?).metadata()
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Returns whether an image that was opened as raw is raw if its format is detected.
fn is_raw_disk(image: &Image, name: &Path) -> bool {
    let mut head = vec![0; image.size().min(HEAD_SIZE as u64) as usize];
    image.read_exact_at(&mut head, 0).is_ok()
        && detect_within(image, &head).is_ok_and(|format| format == Format::Raw)
        && Compression::of_name(name).is_none()
        && check_raw(&head, name, None).is_ok()
}

/// Bytes of the largest image that is hashed by one thread.
const MAX_SIZE: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_raw_disk() {
        let folder = tempfile::tempdir().unwrap();
        let mut ends_like_vpc = vec![0; 1024];
        ends_like_vpc[512..520].copy_from_slice(b"conectix");
        for (name, content, expected) in [
            ("disk.img", &b"x"[..], true),
            ("disk.raw", &[7; 4096], true),
            ("overlay", b"QFI\xfb\0\0\0\x03", false),
            ("disk", &ends_like_vpc, false),
            ("disk.qcow2", b"x", false),
            ("disk.xz", b"x", false),
            ("disk.img.gz", b"\x1f\x8b\x08\0", false),
            ("archive", b"PK\x03\x04", false),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            let image = OpenOptions::new().format(Format::Raw).open(&path).unwrap();
            assert_eq!(is_raw_disk(&image, &path), expected, "{name}");
            // As the image is opened in its turn.
            let opened = OpenOptions::new().open(&path);
            let is_raw = opened.is_ok_and(|it| it.format() == Format::Raw && !it.is_decompressed());
            assert_eq!(is_raw, expected, "{name}");
        }
    }
}
