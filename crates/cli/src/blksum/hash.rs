//! From a name to a checksum, and the mode that prints checksums.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use blkhash::{Digest, Parameters};
use blkimage::{ErrorKind, Format, Image, Source, probe};
use blksum::Progress;

use super::input::{self, Input, Origin};
use super::output::Output;
use super::settings::{Hash, Meaning, Settings};
use super::small::Small;
use super::{PROGRAM, ahead, hints};
use crate::messages;
use crate::progress::Watch;

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

/// Prints the checksums of images. True if all went well; the error is one of writing.
pub fn run(settings: &Settings, hash: &Hash, output: &mut Output) -> io::Result<bool> {
    let mut all_well = true;
    let end = if hash.styles.iter().any(|style| style.zero) { 0 } else { b'\n' };
    let small = Small::new(settings);
    let meaning = settings.meaning();
    let images = settings.names.iter().flat_map(|name| input::expand(name, hash.recursive));
    let ahead = |(name, found): &(OsString, Result<Origin, Failure>)| {
        found.as_ref().ok().and_then(|_| small.checksums(name, &meaning))
    };
    ahead::run(small.threads(), images, ahead, |(name, found), early| {
        let now = |origin| checksums(&name, origin, settings, &meaning, Notes::Printed);
        match found.and_then(|origin| early.unwrap_or_else(|| now(origin))) {
            Ok(report) => {
                report.note_odd_size(&name, Notes::Printed);
                for (checksum, style) in report.checksums.iter().zip(&hash.styles) {
                    if settings.json {
                        output.object(&name, &report, checksum, None, end)?;
                    } else {
                        output.checksum(&name, &checksum.1, style)?;
                    }
                }
                Ok(())
            }
            Err(failure) => {
                all_well = false;
                messages::message_of(PROGRAM, name.as_bytes(), &failure.reason);
                if settings.text && failure.is_missing && hints::is_number(&name) {
                    messages::message(PROGRAM, &hints::threads(&name));
                }
                if settings.json {
                    output.error_object(&name, &failure, None, end)?;
                }
                Ok(())
            }
        }
    })?;
    Ok(all_well)
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

/// The checksums of what `name` stands for.
pub fn checksums(
    name: &OsStr,
    origin: Origin,
    settings: &Settings,
    meaning: &Meaning<'_>,
    notes: Notes,
) -> Result<Report, Failure> {
    let started = Instant::now();
    let open = meaning.open;
    let job = Job { name, settings, meaning, notes };
    let mut report = match Input::new(name).map_err(|error| Failure::from(&error))? {
        Input::Uri(uri) => {
            job.image(&open.open_uri(uri).map_err(|error| Failure::of_image(&error, name))?)?
        }
        Input::Stream(file) => job.stream(file)?,
        Input::Path(path) => match open.open(path) {
            Ok(image) => job.image(&image)?,
            Err(error) if is_stream(&error, path) && origin == Origin::CommandLine => {
                job.stream(input::open_stream(path).map_err(|error| Failure::from(&error))?)?
            }
            Err(error) if is_stream(&error, path) => {
                return Err(Failure::new(format!("{}, {ONLY_NAMED}", error.reason())));
            }
            Err(error) => return Err(Failure::of_image(&error, name)),
        },
        Input::Descriptor { file, start } => {
            let image = open.open_file(file, Path::new(name), start);
            job.image(&image.map_err(|error| Failure::of_image(&error, name))?)?
        }
    };
    report.elapsed = started.elapsed();
    Ok(report)
}

/// Whether this is why `path` is no image: it can only be read once and in order.
fn is_stream(error: &blkimage::Error, path: &Path) -> bool {
    matches!(error.kind(), ErrorKind::Pipe | ErrorKind::FileType) && error.name() == path
}

struct Job<'a> {
    name: &'a OsStr,
    settings: &'a Settings,
    meaning: &'a Meaning<'a>,
    notes: Notes,
}

impl Job<'_> {
    fn image(&self, image: &Image) -> Result<Report, Failure> {
        if self.notes != Notes::Silent {
            for warning in image.warnings() {
                // A warning names its file, which is this one or one behind it.
                let own_name = format!("{}: ", Path::new(self.name).display());
                let text = warning.strip_prefix(&own_name).unwrap_or(warning);
                let text = format!("warning: {text}");
                messages::message_of(PROGRAM, self.name.as_bytes(), &text);
            }
        }
        let part =
            self.meaning.part.map(|part| part.of(image)).transpose().map_err(Failure::new)?;
        let source = part.as_ref().map_or(image as &dyn Source, |part| part);
        let progress = Progress::new();
        let watch = Watch::new(self.settings.progress, Some(source.size()));
        let digests = watch
            .during(
                self.name,
                || progress.done(),
                || {
                    blksum::checksums(
                        source,
                        &self.meaning.parameters,
                        &self.settings.tuning,
                        &progress,
                    )
                },
            )
            .map_err(|error| match error {
                blksum::Error::Image(error) => Failure::of_image(&error, self.name),
                error @ blksum::Error::Zeros { .. } => Failure::new(format!("{error}{MORE_ZEROS}")),
                other => Failure::new(other.to_string()),
            })?;
        let size = source.size();
        Ok(Report { virtual_size: size, ..Report::new(&self.meaning.parameters, digests, image) })
    }

    /// Bytes that come once and in order are raw content, and only where they do not look like
    /// anything else: what is at the end of a format's metadata cannot be known here.
    fn stream(&self, mut file: File) -> Result<Report, Failure> {
        let io_failure = |error: io::Error| Failure::from(&error);
        let what =
            if self.name == "-" { "standard input is a pipe" } else { "it is read as a pipe" };
        if let Some(format) = self.meaning.open.format.filter(|format| *format != Format::Raw) {
            let reason = format!("{what}, and {format} images can only be read from files");
            return Err(Failure::new(reason));
        }
        if self.meaning.open.snapshot.is_some() {
            return Err(Failure::new(format!("{what}, and has no snapshots")));
        }
        if let Some(part) = self.meaning.part {
            return Err(Failure::new(format!("{what}, and has no {}", part.what())));
        }
        let mut head = Vec::with_capacity(HEAD_SIZE);
        (&mut file).take(HEAD_SIZE as u64).read_to_end(&mut head).map_err(io_failure)?;
        if self.meaning.open.format.is_none()
            && let Some(format) = probe(&head)
        {
            return Err(Failure::new(format!(
                "{what} and looks like {format}: give the file's name, or -f raw to hash its bytes"
            )));
        }
        let progress = Progress::new();
        let parameters = &*self.meaning.parameters;
        let watch = Watch::new(self.settings.progress, None);
        let (digests, length) = watch
            .during(
                self.name,
                || progress.done(),
                || {
                    let (content, tuning) = (head.chain(file), &self.settings.tuning);
                    blksum::stream_checksums(content, parameters, tuning, &progress)
                },
            )
            .map_err(|error| match error {
                blksum::Error::Stream(error) => io_failure(error),
                other => Failure::new(other.to_string()),
            })?;
        Ok(Report {
            checksums: parameters.iter().copied().zip(digests).collect(),
            format: Format::Raw,
            virtual_size: length,
            bytes_read: length,
            elapsed: Duration::ZERO,
        })
    }
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

    /// What the image reader said of the image `name`, which the message says anyway.
    fn of_image(error: &blkimage::Error, name: &OsStr) -> Self {
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

const ONLY_NAMED: &str = "which is read only where the command line names it";

/// How much of a stream is looked at to tell its format.
const HEAD_SIZE: usize = 4096;

/// What to do about a limit.
const MORE_ZEROS: &str = ": --max-zeros=SIZE allows more";

const SECTOR: u64 = 512;
