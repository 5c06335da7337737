//! Reads check files before the first image, because the sandbox must know the names in them.
//!
//! A terminal is not waited for, a pipe only briefly, and of a very long file only the beginning is
//! held. This does not change the output, only how narrow the sandbox can be. Containers are only read
//! in it: their manifests name nothing but members. So are check files on servers, which name nothing but files
//! next to them there, and other URLs.

use std::collections::{HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use blkhash::Algorithm;
use blkimage::{
    AtUrl, ErrorKind, FileKind, Format, Location, OpenOptions, Source, is_container, member_name,
    states_checksums,
};
use blksum::check_file::{Entry, Form, Line, Parser, Style};
use blksum::{Encoding, Tag};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::settings::Settings;
use super::stated::{self, SelfCheck};
use crate::{messages, quote, stdio};

/// Check files: those held in memory, then those that are opened in their turn.
pub struct CheckFiles {
    held: Vec<io::Result<CheckFile>>,
    /// Options for opening containers and URLs.
    open: OpenOptions,
    /// Whether all files are held completely.
    pub is_all: bool,
}

/// A check file: the beginning, which is held in memory, then the rest.
pub struct CheckFile {
    held: Vec<u8>,
    position: usize,
    rest: Rest,
    /// Images that are checked without a line.
    read: VecDeque<SelfCheck>,
    /// The URL of the file, in whose folder its names are.
    base: Option<String>,
}

/// What is held of a check file.
#[derive(Clone, Copy)]
pub struct Held<'a> {
    pub content: &'a [u8],
    /// The URL of the file, in whose folder its names are.
    pub base: Option<&'a str>,
}

enum Rest {
    None,
    Unread(File),
    /// The file stands for the disks in it.
    Container(PathBuf),
    /// The file is on a server.
    Url(String),
    /// The file is an image that states checksums of its content.
    Image(PathBuf),
    /// Reading failed.
    Error,
}

impl CheckFiles {
    /// Reads the files into memory, completely if possible. `open` has the options for servers, and whether images are trusted.
    pub fn hold(names: &[OsString], open: &OpenOptions) -> Self {
        let open = OpenOptions::new().force_share(true).follow(open.follow).http(open.http.clone());
        let mut files = Self { held: Vec::new(), open, is_all: true };
        // The order in which several pipes are written is unknown, so none of them is waited for.
        if names.len() > 1 && names.iter().any(|name| is_stream(name)) {
            files.is_all = false;
            return files;
        }
        let mut room = MAX_HELD;
        for name in names {
            let file = self::open(name).map(|file| file.hold(room));
            if let Ok(file) = &file {
                room -= file.held.len();
                files.is_all = !matches!(file.rest, Rest::Unread(_));
            }
            files.held.push(file);
            if !files.is_all {
                break;
            }
        }
        files
    }

    /// Returns the part of each file that is held.
    pub fn contents(&self) -> impl Iterator<Item = Held<'_>> {
        let files = self.held.iter().flatten();
        files.map(|file| Held { content: &file.held, base: file.base.as_deref() })
    }

    /// Returns the names of the containers and of the files on servers that are read later.
    pub fn read_later(&self) -> impl Iterator<Item = &Path> {
        self.held.iter().flatten().filter_map(|file| match &file.rest {
            Rest::Container(path) => Some(path.as_path()),
            Rest::Url(url) => Some(Path::new(url)),
            _ => None,
        })
    }

    /// Returns the images that are read later.
    pub fn images(&self) -> impl Iterator<Item = &Path> {
        self.held.iter().flatten().filter_map(|file| match &file.rest {
            Rest::Image(path) => Some(path.as_path()),
            _ => None,
        })
    }

    /// Returns the number of images that are checked without a line, in the files that are held.
    pub fn reads(&self) -> u64 {
        self.held.iter().flatten().map(|file| file.read.len() as u64).sum()
    }

    /// Reads the manifests of containers, what images state of themselves, and the files on servers. The process is
    /// restricted before.
    #[must_use]
    pub fn with_later(mut self, settings: &Settings) -> Self {
        let held = std::mem::take(&mut self.held).into_iter();
        let later = |file: CheckFile| file.with_later(&self.open, settings);
        self.held = held.map(|file| file.and_then(later)).collect();
        self
    }

    /// Returns whether reading the rest may block.
    pub fn may_wait(&self, names: &[OsString]) -> bool {
        !self.is_all && names.iter().any(|name| is_stream(name))
    }

    /// Returns the files, in the order of `names`.
    pub fn open(
        self,
        names: &[OsString],
        settings: &Settings,
    ) -> impl Iterator<Item = io::Result<CheckFile>> {
        let others = names.iter().skip(self.held.len());
        let others = others
            .map(move |name| open(name).and_then(|file| file.with_later(&self.open, settings)));
        self.held.into_iter().chain(others)
    }
}

impl CheckFile {
    /// Reads at most `room` bytes, and for no longer than [`PATIENCE`] unless this is a regular file.
    fn hold(self, room: usize) -> Self {
        let mut file = match self.rest {
            Rest::Unread(file) => file,
            rest => return Self { rest, ..self },
        };
        let may_wait = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let is_terminal = file.is_terminal();
        let deadline = Instant::now() + PATIENCE;
        let mut held = Vec::new();
        let rest = loop {
            if held.len() == room || is_terminal || !may_wait && !is_ready(&file, deadline) {
                break Rest::Unread(file);
            }
            let limit = CHUNK.min(room - held.len()) as u64;
            // Reads a pipe only once, because the next read may block.
            let count = if may_wait {
                (&mut file).take(limit).read_to_end(&mut held)
            } else {
                let start = held.len();
                held.resize(start + limit as usize, 0);
                let count = read(&mut file, &mut held[start..]);
                held.truncate(start + count.as_ref().map_or(0, |count| *count));
                count
            };
            match count {
                Ok(0) => break Rest::None,
                Ok(_) => {}
                Err(_) => break Rest::Error,
            }
        };
        Self { held, rest, ..self }
    }

    /// Returns the URL of the file, in whose folder its names are. `None` if it is on this host.
    pub fn base(&self) -> Option<&str> {
        self.base.as_deref()
    }

    /// Reads the manifest if this is a container, what an image states of itself, and the file if it is on a server.
    fn with_later(self, options: &OpenOptions, settings: &Settings) -> io::Result<Self> {
        match self.rest {
            Rest::Container(path) => manifest(&path, options),
            Rest::Image(path) => {
                let (lines, read) = stated::lines(path.as_os_str(), settings)?;
                Ok(Self::of_lines(lines, read))
            }
            Rest::Url(url) => fetched(&url, options, settings),
            rest => Ok(Self { rest, ..self }),
        }
    }

    /// Creates a check file of lines, and of images that are checked without one.
    pub fn of_lines(held: Vec<u8>, read: impl IntoIterator<Item = SelfCheck>) -> Self {
        let read = read.into_iter().collect();
        Self { held, position: 0, rest: Rest::None, read, base: None }
    }

    /// Takes the next image that is checked without a line.
    pub fn next_read(&mut self) -> Option<SelfCheck> {
        self.read.pop_front()
    }
}

impl Read for CheckFile {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let held = &self.held[self.position..];
        if !held.is_empty() {
            let count = held.len().min(buf.len());
            buf[..count].copy_from_slice(&held[..count]);
            self.position += count;
            return Ok(count);
        }
        match &mut self.rest {
            Rest::None => Ok(0),
            Rest::Unread(file) => file.read(buf),
            Rest::Error | Rest::Container(_) | Rest::Image(_) | Rest::Url(_) => {
                Err(io::ErrorKind::Other.into())
            }
        }
    }
}

fn open(name: &OsStr) -> io::Result<CheckFile> {
    let rest = if let Some(url) = Location::new(name).url() {
        // An archive without the name of an appliance may be an OCI image.
        let is_archive = is_container(Path::new(name)) || is_named_archive(name);
        if is_archive { Rest::Container(name.into()) } else { Rest::Url(url.to_owned()) }
    } else if name == "-" {
        // As in other programs, a closed standard input fails on reading, not on opening.
        stdio::stdin().inspect(messages::note_terminal).map_or(Rest::Error, Rest::Unread)
    } else {
        match Path::new(name) {
            path if is_container(path) => Rest::Container(path.to_owned()),
            path if states_checksums(path) => Rest::Image(path.to_owned()),
            path => Rest::Unread(File::open(path)?),
        }
    };
    Ok(CheckFile { rest, ..CheckFile::of_lines(Vec::new(), []) })
}

/// Returns whether the name of the file of a URL is a tar archive's.
fn is_named_archive(url: &OsStr) -> bool {
    let name = Location::new(url).file_name();
    name.is_some_and(|name| name.as_bytes().to_ascii_lowercase().ends_with(b".tar"))
}

/// Returns the check file at a URL, or what an image there states of itself.
fn fetched(url: &str, options: &OpenOptions, settings: &Settings) -> io::Result<CheckFile> {
    let found = settings.open.clone().format(None).open_url(url);
    if let Ok(AtUrl::Image(image)) = &found {
        let stated = image.stated_checksums().map_err(|error| other(&error))?;
        if image.format().states_checksums() || stated.is_some() {
            let (lines, check) = stated::of_image(image, OsStr::new(url), settings)?;
            return Ok(CheckFile::of_lines(lines, check));
        }
    }
    // Otherwise it is the bytes there. A server that cannot be reached is not asked again.
    let is_plain = match &found {
        Ok(AtUrl::Image(image)) => image.format() == Format::Raw && !image.is_decompressed(),
        Ok(AtUrl::Stream(content)) => content.compression().is_none(),
        Err(error) if matches!(error.kind(), ErrorKind::Connect | ErrorKind::Io) => {
            return Err(other(error));
        }
        Err(_) => false,
    };
    let found = match found {
        Ok(found) if is_plain => found,
        _ => options.clone().format(Format::Raw).open_url(url).map_err(|error| other(&error))?,
    };
    let mut content = Vec::new();
    match found {
        AtUrl::Stream(stream) => {
            stream.take(MAX_HELD as u64 + 1).read_to_end(&mut content).map_err(|error| {
                match error.downcast::<blkimage::Error>() {
                    Ok(error) => other(&error),
                    Err(error) => error,
                }
            })?;
        }
        AtUrl::Image(image) => {
            content = vec![0; image.virtual_size().min(MAX_HELD as u64 + 1) as usize];
            image.read_exact_at(&mut content, 0).map_err(|error| other(&error))?;
            image.check_unchanged().map_err(|error| other(&error))?;
        }
    }
    match content.len() > MAX_HELD {
        true => Err(io::Error::other(format!("has more than {} MiB", MAX_HELD >> 20))),
        false => Ok(CheckFile { base: Some(url.to_owned()), ..CheckFile::of_lines(content, None) }),
    }
}

/// Returns the error of a container or of a check file on a server.
fn other(error: &blkimage::Error) -> io::Error {
    stated::io_error(error, true)
}

/// Returns the manifest of a container as a check file, in which every line names a member of the
/// container.
fn manifest(path: &Path, options: &OpenOptions) -> io::Result<CheckFile> {
    // Lines in a file of this name would be of files next to it, not of members.
    let Some(container) = options.open_container(path).map_err(|error| other(&error))? else {
        let kind = FileKind::of_name(path).map_or("a container".to_owned(), ToString::to_string);
        return Err(io::Error::other(format!("is named as {kind}, and is none")));
    };
    let manifest = container.manifest().map_err(|error| other(&error))?;
    let mut parser = Parser::new(UNUSED);
    let (mut lines, mut listed) = (Vec::new(), HashSet::new());
    let mut unknown = None;
    for (number, line) in manifest.text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if number == MAX_LINES {
            let reason = format!("has a manifest of more than {MAX_LINES} lines");
            return Err(io::Error::other(reason));
        }
        match parser.parse(line) {
            Line::Ignored => lines.push(b'\n'),
            Line::Entry(Entry { name, digest, tag: Some(Tag::File(algorithm)), .. }) => {
                let style = Style {
                    form: Form::Tagged(Tag::File(algorithm)),
                    encoding: Encoding::Hex,
                    zero: false,
                };
                if !listed.insert((algorithm, name.to_vec())) {
                    let name = quote::name(&name);
                    let reason = format!("has a manifest that lists {name} twice");
                    return Err(io::Error::other(reason));
                }
                let name = member_name(path, &name);
                lines.extend(style.line(name.as_os_str().as_bytes(), &digest));
            }
            // Only members are checked, whatever else a line names.
            Line::Entry(_) | Line::Malformed => {
                unknown = unknown.or(Some((number + 1, line.trim_ascii_end())));
                lines.extend_from_slice(b"malformed\n");
            }
        }
    }
    let resolved = listed.iter().filter_map(|(_, name)| container.resolve(name).ok());
    let listed: HashSet<_> = resolved.chain(manifest.read.iter().cloned()).collect();
    if let Some(disk) = manifest.disks.iter().find(|disk| !listed.contains(*disk)) {
        let disk = quote::name(disk);
        let unknown = unknown.map_or_else(String::new, |(number, line)| {
            let line = quote::name(&line[..line.len().min(MAX_SHOWN)]);
            format!(": line {number} of it is not understood, {line}")
        });
        return Err(io::Error::other(format!(
            "has the disk {disk}, which its manifest does not list{unknown}"
        )));
    }
    let read = manifest.read.iter();
    let read = read.map(|disk| SelfCheck::Parts(member_name(path, disk).into_os_string()));
    Ok(CheckFile::of_lines(lines, read))
}

/// Returns whether reading `name` may block on another process. A missing file never does.
fn is_stream(name: &OsStr) -> bool {
    let metadata = if name == "-" {
        stdio::stdin().and_then(|stdin| stdin.metadata())
    } else {
        fs::metadata(name)
    };
    metadata.is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Blocks until there is something to read, or the end of the file. Returns false after the deadline.
fn is_ready(file: &File, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => {}
            // The next read reports the error.
            other => return other.is_err() || other.is_ok_and(|count| count > 0),
        }
    }
}

fn read(file: &mut File, buf: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buf) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Maximum size of all check files that are read before the sandbox is closed, and of each on a server, which is more than a
/// hundred thousand lines.
/// Limit in bytes.
const MAX_HELD: usize = 16 << 20;

/// Maximum number of lines in a manifest, which is twice the number of members. The headers of the archive are read for
/// each.
/// Limit in lines.
const MAX_LINES: usize = 2000;

/// Maximum number of bytes of a line of a manifest in an error.
/// Limit in bytes.
const MAX_SHOWN: usize = 200;

/// The digest of lines without a tag, of which a manifest has none.
const UNUSED: Algorithm = Algorithm::Sha256;

const CHUNK: usize = 64 << 10;

/// Maximum time that reading a check file from a pipe may delay the first checksum.
/// Limit in seconds.
const PATIENCE: Duration = Duration::from_secs(1);
