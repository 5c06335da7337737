//! From a name to a checksum, and the mode that prints checksums.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use blkhash::{Digest, Hasher, Parameters};
use blkimage::{
    AtUrl, Decompressed, ErrorKind, Format, Image, Member, OpenOptions, Source, container_of,
};
use blksum::check_file::{Form, Style};
use blksum::expect::{Observed, Shape};
use blksum::map::Subject;
use blksum::{Content, Part, Progress};

use super::hints;
use super::maps::Maps;
use super::output::Output;
use super::report::{self, Report};
use super::settings::{Hash, Meaning, Settings};
use super::small::Small;
use super::{confine, recorded};
use crate::image::about;
use crate::image::input::{self, Found, Input, Origin};
use crate::image::notes::Notes;
use crate::image::{advice, open};
use crate::messages;
use crate::problem::{Cause, Problem};
use crate::progress::{Amount, Counts, Reporter};

/// Prints the checksums of images. True if all went well; the error is one of writing.
pub fn run(settings: &Settings, hash: &Hash, maps: &Maps, output: &mut Output) -> io::Result<bool> {
    let mut all_well = true;
    let small = Small::new(settings);
    let count = hash.recursive.is_none().then_some(settings.names.len() as u64);
    let reporter = Reporter::new(settings.progress, count);
    let is_recorded =
        !settings.json && hash.styles.iter().any(|style| matches!(style.form, Form::Tagged(_)));
    let meaning = Meaning { is_recorded, ..settings.meaning() };
    let expand = |name| input::expand(name, settings.origin, hash.recursive.as_ref(), hash.notes);
    let maps = hash.map.is_some().then_some(maps);
    // The maps themselves may be in a folder of images.
    let is_image = |(name, found): &Found| {
        hash.recursive.is_none() || found.is_err() || maps.is_none_or(|maps| maps.has(name))
    };
    let images = settings.names.iter().flat_map(|name| expand(name)).filter(is_image);
    let images = images.flat_map(|found| match maps {
        None => input::disks(found, &settings.open),
        // The archive is unread when its map is named, so it has one map and must have one disk.
        Some(_) => vec![found],
    });
    let is_only = settings.names.len() == 1
        && hash.recursive.is_none()
        && maps.is_none()
        && hash.bytes.is_empty();
    // A note on one file stands for all.
    let mut notes_size = hash.notes == Notes::Printed && settings.open.format.is_none();
    let content = settings.content();
    // A map is written in the turn of its image, and digests of bytes are computed there.
    let ahead = |(name, found): &Found| {
        let found = found.as_ref().ok().filter(|_| maps.is_none() && hash.bytes.is_empty());
        found.and_then(|_| small.checksums(name, &meaning))
    };
    let in_turn = |(name, found): Found,
                   early: Option<Result<Report, Problem>>|
     -> io::Result<()> {
        let beside = early.as_ref().map(size);
        let now = |origin| {
            let (name, notes, reporter) = (&*name, hash.notes, &reporter);
            let job = Job { name, settings, meaning: &meaning, notes, reporter, maps, is_only };
            job.with_bytes(origin, &hash.bytes)
        };
        let result = found.and_then(|origin| early.unwrap_or_else(|| now(origin)));
        reporter.end(&name, beside);
        match result {
            Ok(report) => {
                notes_size = notes_size && !report.note_odd_size(&name);
                print(&name, &report, settings, hash, output)?;
                if let Some(problem) = &report.map_problem {
                    all_well = false;
                    problem.report(&name);
                }
                Ok(())
            }
            Err(failure) => {
                all_well = false;
                let is_missing = failure.cause == Cause::Missing;
                let value = is_missing.then(|| hints::detached_value(&name, settings)).flatten();
                let hint = value.or_else(|| hints::of_failure(&name, failure.cause));
                let failure =
                    Problem { hint: hint.map(Cow::Owned).or(failure.hint.clone()), ..failure };
                failure.report(&name);
                if settings.text && is_missing && hints::is_number(&name) {
                    messages::message(&hints::threads(&name));
                }
                if settings.json {
                    let end = hash.end_of_line();
                    output.error_object(&name, &failure, &content, None, end)?;
                }
                Ok(())
            }
        }
    };
    blksum::in_order(small.threads(), images, ahead, in_turn)?;
    if hash.notes == Notes::Printed && !settings.json {
        recorded::note_lost(&hash.styles, &content);
    }
    Ok(all_well)
}

/// Prints the checksums of an image.
fn print(
    name: &OsStr,
    report: &Report,
    settings: &Settings,
    hash: &Hash,
    output: &mut Output,
) -> io::Result<()> {
    let (content, end) = (settings.content(), hash.end_of_line());
    for (checksum, style) in report.checksums.iter().zip(&hash.styles) {
        if settings.json {
            output.object(name, report, checksum, &content, None, end)?;
        } else {
            let style = recorded::style(style, name, report, &settings.open);
            output.checksum(name, &checksum.1, &style)?;
        }
    }
    for (digest, (parameters, style)) in report.bytes.iter().zip(&hash.bytes) {
        if settings.json {
            let checksum = &(*parameters, *digest);
            output.object_of_bytes(name, report, checksum, &content, end)?;
        } else {
            output.checksum(name, digest, style)?;
        }
    }
    Ok(())
}

/// The checksums of what a name stands for.
pub struct Job<'a> {
    pub name: &'a OsStr,
    pub settings: &'a Settings,
    pub meaning: &'a Meaning<'a>,
    pub notes: Notes,
    pub reporter: &'a Reporter,
    /// The maps of the run, if there are some to write.
    pub maps: Option<&'a Maps>,
    /// Whether the run opens no other file once this image is open.
    pub is_only: bool,
}

impl Job<'_> {
    /// Computes the checksums, and beside them the digests of the bytes of the file.
    fn with_bytes(&self, origin: Origin, bytes: &[(Parameters, Style)]) -> Result<Report, Problem> {
        if bytes.is_empty() {
            return self.checksums(origin);
        }
        let parameters: Vec<_> = bytes.iter().map(|(parameters, _)| *parameters).collect();
        let (name, settings) = (self.name, self.settings);
        if origin == Origin::CommandLine && input::is_read_once(name) {
            return self.pipe_with_bytes(&parameters);
        }
        let (digests, report) = thread::scope(|scope| {
            let digests = scope.spawn(|| of_bytes(name, settings, &parameters));
            let report = self.checksums(origin);
            (digests.join().expect("does not panic"), report)
        });
        let report = report?;
        Ok(Report { bytes: digests?, ..report })
    }

    /// Computes the checksums of a pipe, and the digests of what comes through it.
    fn pipe_with_bytes(&self, parameters: &[Parameters]) -> Result<Report, Problem> {
        let failed = |error: io::Error| Problem::from(&error);
        let file = match Input::new(self.name).map_err(failed)? {
            Input::Path(path) => input::open_stream(path).map_err(failed)?,
            Input::Stream(file) => file,
            Input::Uri(_) | Input::Descriptor { .. } => return Err(Problem::new("is no pipe")),
        };
        self.reporter.begin(self.name);
        let hashers = parameters.iter().map(|parameters| {
            let digester = self.settings.tuning.digester(parameters.algorithm())?;
            Ok(Hasher::with_digester(*parameters, &digester, 1))
        });
        let hashers = hashers.collect::<Result<Vec<_>, blkhash::Error>>();
        let hashers = hashers.map_err(|error| Problem::new(error.to_string()))?;
        let hashers = Arc::new(Mutex::new(hashers));
        let started = Instant::now();
        let report = self.pipe(Hashing { file, hashers: hashers.clone() })?;
        let mut hashers = hashers.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = hashers.drain(..).map(Hasher::finalize).collect();
        Ok(Report { bytes, elapsed: started.elapsed(), ..report })
    }

    /// Computes the checksums.
    pub fn checksums(&self, origin: Origin) -> Result<Report, Problem> {
        let started = Instant::now();
        let (name, open) = (self.name, &*self.meaning.open);
        self.reporter.begin(name);
        if name == "-" && self.settings.is_stdin_taken {
            return Err(Problem::new("standard input is the list of names"));
        }
        let mut report = match Input::new(name).map_err(|error| Problem::from(&error))? {
            Input::Uri(url) if input::is_url(name) => self.url(url)?,
            Input::Uri(uri) => {
                let image = open.open_uri(uri);
                self.image(image.map_err(|error| Problem::of_image(&error, name))?)?
            }
            Input::Stream(file) => self.pipe(file)?,
            Input::Path(path) => self.path(path, origin)?,
            Input::Descriptor { file, start } => {
                let image = open.open_file(file, Path::new(name), start);
                self.image(image.map_err(|error| Problem::of_image(&error, name))?)?
            }
        };
        report.elapsed = started.elapsed();
        Ok(report)
    }

    /// Hashes a file.
    fn path(&self, path: &Path, origin: Origin) -> Result<Report, Problem> {
        let Meaning { open, part, .. } = self.meaning;
        let is_whole = part.is_none() && self.maps.is_none();
        if is_whole && let Some((head, content)) = open::decompressed(path, open, HEAD_SIZE)? {
            let report = self.stream(&head, content)?;
            return Ok(Report { is_decompressed: true, ..report });
        }
        match open.open(path) {
            Ok(image) => self.image(image),
            Err(error) if is_stream(&error, path) && origin == Origin::CommandLine => {
                self.pipe(input::open_stream(path).map_err(|error| Problem::from(&error))?)
            }
            Err(error) if is_stream(&error, path) => {
                Err(Problem::new(format!("{}, {ONLY_NAMED}", error.reason())))
            }
            Err(error) => Err(Problem::of_image(&error, self.name)),
        }
    }

    /// Hashes an object on a server.
    fn url(&self, url: &str) -> Result<Report, Problem> {
        let Meaning { open, part, .. } = self.meaning;
        let failed = |error| Problem::of_image(&error, self.name);
        if part.is_some() || self.maps.is_some() {
            return self.image(open.open_uri(url).map_err(failed)?);
        }
        match open.open_url(url).map_err(failed)? {
            AtUrl::Image(image) => self.image(image),
            AtUrl::Stream(content) => {
                let is_decompressed = content.compression().is_some();
                Ok(Report { is_decompressed, ..self.stream(&[], content)? })
            }
        }
    }

    fn image(&self, image: Image) -> Result<Report, Problem> {
        let image = Arc::new(image);
        if self.notes != Notes::Silent {
            advice::warn(&image, self.name);
        }
        if let Some(warning) = unused_secret(&self.meaning.open, &image)
            && self.notes != Notes::Silent
        {
            messages::message_of(self.name.as_bytes(), warning);
        }
        let mut about = self.settings.verbose.then(|| {
            let about = about::about(
                &image,
                &self.meaning.parameters,
                &self.settings.tuning,
                self.settings.open.nbd.connections,
            );
            about::print(&about, &image, self.name);
            about
        });
        // A disk in a container has files that are opened later, and a server is connected to again.
        let is_open = container_of(Path::new(self.name)).is_none() && !input::is_url(self.name);
        if self.is_only && is_open {
            confine::opened(self.settings);
        }
        let part = self
            .meaning
            .part
            .map(|part| part.of(&image))
            .transpose()
            .map_err(|error| Problem::new(error.to_string()))?;
        let source = part.as_ref().map_or(&*image as &dyn Source, |part| part);
        let size = source.size();
        if self.meaning.is_recorded && part.is_some() && size < Content::SECTOR {
            return Err(Problem::new(format!(
                "the part has {size} bytes, and a tag holds ranges of whole sectors of {} bytes",
                Content::SECTOR
            )));
        }
        let progress = Arc::new(Progress::new());
        let amount = Amount { total: size, stored: stored(&image) };
        let watch = self.reporter.watch(Some(amount), {
            let (progress, image) = (progress.clone(), image.clone());
            move || Counts { read: image.bytes_read(), ..counts(&progress) }
        });
        let (parameters, tuning) = (&*self.meaning.parameters, &self.settings.tuning);
        let digests = match self.maps {
            None => blksum::checksums(source, parameters, tuning, &progress)
                .map(|digests| (digests, None))
                .map_err(|error| report::problem(&error, self.name)),
            Some(maps) => {
                maps.checksums(&self.subject(&image, source), parameters, tuning, &progress)
            }
        };
        drop(watch);
        let (digests, map_problem) = digests?;
        if let Some(about) = &mut about {
            about::finish(about, parameters, tuning, self.name);
            about::print_requests(&image, self.name);
        }
        let has_value = |digest: &Digest| {
            self.meaning.sought.iter().any(|value| value.digest == digest.as_bytes())
        };
        let shape = digests.iter().any(has_value).then(|| Shape::of(source)).transpose();
        let shape = shape.map_err(|error| report::problem(&error, self.name))?;
        let report = Report::new(parameters, digests, &image);
        Ok(Report { virtual_size: size, shape, about, map_problem, ..report })
    }

    /// Describes the image for its map.
    fn subject<'s>(&'s self, image: &'s Image, source: &'s dyn Source) -> Subject<'s> {
        Subject {
            name: self.name,
            image,
            source,
            snapshot: self.meaning.open.snapshot.as_deref(),
            partition: self.meaning.part.and_then(Part::partition),
        }
    }

    /// Bytes that come once and in order are raw content, and only where they do not look like
    /// anything else: what is at the end of a format's metadata cannot be known here.
    fn pipe(&self, file: impl Read + Send + 'static) -> Result<Report, Problem> {
        let what =
            if self.name == "-" { "standard input is a pipe" } else { "it is read as a pipe" };
        let open = &self.meaning.open;
        if let Some(format) = open.format.filter(|format| *format != Format::Raw) {
            let reason = format!("{what}, and {format} images can only be read from files");
            return Err(Problem::new(reason));
        }
        if open.snapshot.is_some() {
            return Err(Problem::new(format!("{what}, and has no snapshots")));
        }
        if let Some(part) = self.meaning.part {
            return Err(Problem::new(format!("{what}, and has no {}", part.what())));
        }
        if self.maps.is_some() {
            return Err(Problem::new(format!("{what}, and a map needs its size first")));
        }
        let failed = |error: io::Error| Problem::of_stream(&error, self.name);
        let mut content: Box<dyn Read + Send> = match open.compression {
            None => Box::new(file),
            Some(compression) => {
                let name = Path::new(self.name);
                Box::new(Decompressed::new(compression, file, open, name).map_err(failed)?)
            }
        };
        let mut head = Vec::new();
        (&mut content).take(HEAD_SIZE).read_to_end(&mut head).map_err(failed)?;
        open::check_stream(&head, self.name, what, open)?;
        if (head.len() as u64) < HEAD_SIZE {
            // A terminal goes on behind its end.
            content = Box::new(io::empty());
        }
        self.stream(&head, content)
    }

    /// Hashes bytes that come once and in order, of which `head` was read.
    fn stream(&self, head: &[u8], content: impl Read + Send) -> Result<Report, Problem> {
        let progress = Arc::new(Progress::new());
        let watch = self.reporter.watch(None, {
            let progress = progress.clone();
            move || counts(&progress)
        });
        let (tuning, parameters) = (&self.settings.tuning, &*self.meaning.parameters);
        let content = head.chain(content);
        let (digests, shape) = match self.meaning.sought {
            [] => (blksum::stream_checksums(content, parameters, tuning, &progress), None),
            _ => {
                let mut content = Observed::new(content);
                let digests = blksum::stream_checksums(&mut content, parameters, tuning, &progress);
                (digests, Some(content.shape()))
            }
        };
        drop(watch);
        let (digests, length) = digests.map_err(|error| report::problem(&error, self.name))?;
        Ok(Report {
            map_problem: None,
            implanted: None,
            sums: None,
            checksums: parameters.iter().copied().zip(digests).collect(),
            bytes: Vec::new(),
            format: Format::Raw,
            has_other_files: false,
            has_vpc: false,
            vpc_sizes: None,
            is_decompressed: false,
            shape,
            virtual_size: length,
            bytes_read: length,
            elapsed: Duration::ZERO,
            about: None,
        })
    }
}

/// A reader that hashes what it reads.
struct Hashing {
    file: File,
    hashers: Arc<Mutex<Vec<Hasher>>>,
}

impl Read for Hashing {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buf)?;
        let mut hashers = self.hashers.lock().unwrap_or_else(PoisonError::into_inner);
        hashers.iter_mut().for_each(|hasher| hasher.update(&buf[..count]));
        Ok(count)
    }
}

/// Returns the digests of the bytes of a file.
fn of_bytes(
    name: &OsStr,
    settings: &Settings,
    parameters: &[Parameters],
) -> Result<Vec<Digest>, Problem> {
    let open = recorded::of_bytes(settings).open;
    let image = match Input::new(name).map_err(|error| Problem::from(&error))? {
        Input::Uri(uri) => open.open_uri(uri),
        Input::Path(path) => open.open(path),
        Input::Descriptor { file, start } => open.open_file(file, Path::new(name), start),
        Input::Stream(_) => return Err(Problem::new("is a pipe, and is read once")),
    };
    let image = image.map_err(|error| Problem::of_image(&error, name))?;
    let digests = blksum::checksums(&image, parameters, &settings.tuning, &Progress::new());
    digests.map_err(|error| report::problem(&error, name))
}

/// Whether this is why `path` is no image: it can only be read once and in order.
fn is_stream(error: &blkimage::Error, path: &Path) -> bool {
    matches!(error.kind(), ErrorKind::Pipe | ErrorKind::FileType) && error.name() == path
}

/// Returns a warning if there is a secret and no image of the chain needs one.
fn unused_secret(open: &OpenOptions, image: &Image) -> Option<&'static str> {
    let is_encrypted = image.chain().iter().any(|image| image.format() == Format::Luks);
    let is_unused = open.secret.is_some() && !is_encrypted;
    is_unused.then_some("warning: is not encrypted: --secret-file was not used")
}

/// Returns the progress of a pass if all data is stored as it is.
pub fn counts(progress: &Progress) -> Counts {
    Counts { done: progress.done(), data: progress.data(), read: progress.data() }
}

/// Bytes that the files of the chain take, `None` if that is unknown for one of them.
fn stored(image: &Image) -> Option<u64> {
    let mut files = image.chain().iter().flat_map(Member::files);
    files.try_fold(0_u64, |sum, file| Some(sum.saturating_add(file.stored()?)))
}

/// The size of an image that was hashed beside others; 0 where it could not be.
pub fn size(early: &Result<Report, Problem>) -> u64 {
    early.as_ref().map_or(0, |report| report.virtual_size)
}

const ONLY_NAMED: &str = "which is read only where the command line names it";

/// Number of bytes of a stream that are examined to detect its format.
const HEAD_SIZE: u64 = 4096;
