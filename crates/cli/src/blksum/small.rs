//! Which images are hashed ahead of their turn, side by side, and how.
//!
//! Those are small raw files: one thread is all that they have work for, they name no other file, and
//! no more than one descriptor is open for each. Everything else, and whatever goes wrong, is done in
//! its turn by [`Job::checksums`](super::hash::Job::checksums), as if nobody had tried before: every message
//! but that there is no such file comes from there.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use blkimage::{ErrorKind, Format};
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
        let is_raw = open.format.is_none_or(|format| format == Format::Raw);
        if name == "-" || input::is_uri(name) || !is_raw || part.is_some() {
            return None;
        }
        let path = Path::new(name);
        // What claims to be empty may be made up as it is read, and reading may wait for something.
        let is_small = |identity: (u64, u64), size| {
            (1..=MAX_SIZE).contains(&size) && !self.written.contains(&identity)
        };
        let image = match open.open_if_raw(path, is_small) {
            Ok(image) => image?,
            Err(error) => {
                let is_missing = error.kind() == ErrorKind::Open && error.name() == path;
                let source = error.io_error().filter(|_| is_missing);
                let missing = source.filter(|error| error.kind() == io::ErrorKind::NotFound)?;
                return Some(Err(Problem::from(missing)));
            }
        };
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

/// Bytes of the largest image that is hashed by one thread.
const MAX_SIZE: u64 = 1 << 20;
