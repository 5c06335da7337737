//! Finds out what a name refers to: standard input, a pipe, an image, a folder or a URI.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use blkimage::{Container, ErrorKind, Format, Location, OpenOptions, is_container, member_name};
use rustix::fs::{Mode, OFlags};
use walkdir::{DirEntry, WalkDir};

use super::filter::Filter;
use super::notes::Notes;
use crate::problem::Problem;
use crate::{messages, stdio};

/// The target of a name, opened unless blkimage opens it.
pub enum Input<'a> {
    /// An export of an NBD server, or an object on an HTTP or S3 server.
    Uri(&'a str),
    /// A file or block device, by its path.
    Path(&'a Path),
    /// Standard input that is a file or block device, read from `start` on.
    Descriptor {
        /// A duplicate of the descriptor, which shares its offset with standard input.
        file: File,
        /// Offset of standard input in bytes.
        start: u64,
    },
    /// Bytes without a size: a pipe, a character device or a file of procfs.
    Stream(File),
}

impl<'a> Input<'a> {
    /// Classifies `name` by its form, and standard input by its type.
    pub fn new(name: &'a OsStr) -> io::Result<Self> {
        if name == "-" {
            return Self::standard_input();
        }
        match Location::new(name) {
            Location::Path(path) => Ok(Self::Path(path)),
            Location::Uri(uri) => uri
                .to_str()
                .map(Self::Uri)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "URI is not UTF-8")),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn standard_input() -> io::Result<Self> {
        let file = stdio::stdin()?;
        messages::note_terminal(&file);
        let metadata = file.metadata()?;
        let kind = metadata.file_type();
        let is_file = kind.is_file() && (metadata.len() > 0 || !has_content(&file)?);
        if is_file || kind.is_block_device() {
            let start = rustix::fs::tell(&file)?;
            return Ok(Self::Descriptor { file, start });
        }
        Ok(Self::Stream(widen(file)))
    }
}

/// The source of a name, which decides how far it is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    CommandLine,
    /// A check file, a list of names or a folder, none of which is trusted. Pipes, character devices and
    /// files of procfs are not opened, because this may block forever or have side effects.
    Listed,
}

/// Opens a file that can only be read once and in order. Blocks until a FIFO has a writer.
pub fn open_stream(path: &Path) -> io::Result<File> {
    File::open(path).map(widen)
}

/// Enlarges the buffer of a pipe to the size of one read, to switch less often between reader and
/// writer.
fn widen(file: File) -> File {
    // Fails for other files, and for users who have used up their limit, which is harmless.
    blksys::widen_pipe(&file, PIPE_SIZE);
    file
}

/// Returns whether a file has content although its size is 0, as in procfs. Keeps its offset.
fn has_content(file: &File) -> io::Result<bool> {
    Ok(file.read_at(&mut [0], 0)? > 0)
}

/// Returns whether `name` is a URI, which is never the name of a file.
pub fn is_uri(name: &OsStr) -> bool {
    Location::new(name).is_uri()
}

/// Returns whether `name` is the URL of an object on an HTTP or S3 server, which is read like a file and never written.
pub fn is_url(name: &OsStr) -> bool {
    Location::new(name).is_url()
}

/// Returns whether `name` is the URI of an export of an NBD server, whose content has no format of its own.
pub fn is_export(name: &OsStr) -> bool {
    is_uri(name) && !is_url(name)
}

/// Returns whether what `name` stands for can only be read once and in order.
pub fn is_read_once(name: &OsStr) -> bool {
    match Input::new(name) {
        Ok(Input::Stream(_)) => true,
        Ok(Input::Path(path)) => std::fs::metadata(path).is_ok_and(|it| {
            let kind = it.file_type();
            !kind.is_file() && !kind.is_block_device()
        }),
        _ => false,
    }
}

/// Returns the number of bytes of a file or an export as they are, without a format.
///
/// # Errors
///
/// Fails if it cannot be opened, or has no size.
pub fn length(name: &OsStr, open: &OpenOptions) -> Result<u64, Problem> {
    let open = open.clone().format(Format::Raw).snapshot(None);
    let image = match Input::new(name).map_err(|error| Problem::from(&error))? {
        Input::Uri(uri) => open.open_uri(uri),
        Input::Path(path) => open.open(path),
        Input::Descriptor { file, start } => open.open_file(file, Path::new(name), start),
        Input::Stream(_) => return Err(Problem::new("is a pipe, and has no size yet")),
    };
    image.map(|image| image.virtual_size()).map_err(|error| Problem::of_image(&error, name))
}

/// Returns the bytes of a regular file and how many of them are stored. `None` if `name` is none.
pub fn file_size(name: &OsStr) -> Option<(u64, u64)> {
    let metadata = match name == "-" {
        true => stdio::stdin().and_then(|file| file.metadata()),
        false => std::fs::metadata(name),
    };
    let metadata = metadata.ok().filter(std::fs::Metadata::is_file)?;
    Some((metadata.len(), metadata.blocks().saturating_mul(SECTOR)))
}

/// Returns whether `name` names a block device or an export: something that an image is copied to, and that may be
/// larger.
pub fn is_target(name: &OsStr) -> bool {
    is_export(name) || std::fs::metadata(name).is_ok_and(|it| it.file_type().is_block_device())
}

/// Returns whether standard output is a file.
pub fn is_output_kept() -> bool {
    output().is_some()
}

/// Returns the device and inode of the file that standard output is written to. `None` if it is no file.
fn output() -> Option<(u64, u64)> {
    let output = io::stdout().as_fd().try_clone_to_owned().ok()?;
    let metadata = File::from(output).metadata().ok()?;
    metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
}

/// Returns whether the file at `path` is a block map: by its name and by its first bytes.
fn is_map(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open = || rustix::fs::open(path, flags, Mode::empty()).ok().map(File::from);
    let mut magic = [0; blkmap::MAGIC.len()];
    path.extension().is_some_and(|it| it == "blkmap")
        && open().is_some_and(|file| file.read_exact_at(&mut magic, 0).is_ok())
        && magic == blkmap::MAGIC
}

/// Returns the format that is detected for `name` if none is given. `None` if that is unknown.
pub fn detected(name: &OsStr) -> Option<Format> {
    if is_export(name) {
        return Some(Format::Raw);
    }
    match Input::new(name).ok()? {
        Input::Path(path) if !is_container(path) => blkimage::detect(path).ok(),
        Input::Descriptor { file, start: 0 } => blkimage::detect_file(&file, Path::new(name)).ok(),
        _ => None,
    }
}

/// The name of an image to hash and its origin, or the error of listing it.
pub type Found = (OsString, Result<Origin, Problem>);

/// Returns `name`, or the files in it if it is a folder and `recursive` is a filter. These are the
/// regular files beneath the folder that the filter includes, in the order of their names. Symbolic
/// links are not followed.
pub fn expand(
    name: &OsStr,
    origin: Origin,
    recursive: Option<&Filter>,
    notes: Notes,
) -> Box<dyn Iterator<Item = Found> + Send> {
    match recursive {
        Some(filter) if name != "-" && !is_uri(name) && Path::new(name).is_dir() => {
            Box::new(Walk::new(Path::new(name), filter.clone(), notes))
        }
        _ => Box::new(std::iter::once((name.to_owned(), Ok(origin)))),
    }
}

/// Returns the disks in a container, and everything else as it is.
pub fn disks((name, found): Found, open: &OpenOptions) -> Vec<Found> {
    let path = Path::new(&name);
    if found.is_err() || is_export(&name) || open.format.is_some() {
        return vec![(name, found)];
    }
    let container = open.open_container(path);
    let disks = |container: &dyn Container| match container.is_stream() {
        // Opened by the name of the container, the only disk is decoded once.
        true => Ok(Vec::new()),
        false => container.disks(),
    };
    match container.and_then(|it| it.map_or(Ok(Vec::new()), |container| disks(&*container))) {
        Ok(disks) if !disks.is_empty() => {
            let name = |disk: Vec<u8>| member_name(path, &disk).into_os_string();
            disks.into_iter().map(|disk| (name(disk), found.clone())).collect()
        }
        Err(error) if is_of_container(&error) => {
            let failure = Problem::of_image(&error, &name);
            vec![(name, Err(failure))]
        }
        // Opening the file as an image reports any other error.
        Ok(_) | Err(_) => vec![(name, found)],
    }
}

/// Returns whether an error is about the content of a container.
fn is_of_container(error: &blkimage::Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Format)
}

/// Iterator over the files beneath a folder.
struct Walk {
    root: PathBuf,
    entries: walkdir::IntoIter,
    filter: Filter,
    notes: Notes,
    files: u64,
    links: u64,
    /// Device and inode of the file that the checksums are written to.
    output: Option<(u64, u64)>,
    /// Number of block maps that were left out.
    maps: u64,
}

impl Walk {
    fn new(root: &Path, filter: Filter, notes: Notes) -> Self {
        let entries = WalkDir::new(root).sort_by_file_name().into_iter();
        let root = root.to_owned();
        Self { root, entries, filter, notes, files: 0, links: 0, output: output(), maps: 0 }
    }

    /// Returns whether a file is left out because it is no image: a block map, or the list that is being
    /// written, which no check could match.
    fn leaves_out(&mut self, entry: &DirEntry) -> bool {
        let is_output = self.output.is_some_and(|output| {
            entry.metadata().is_ok_and(|found| (found.dev(), found.ino()) == output)
        });
        let is_map = is_map(entry.path());
        self.maps += u64::from(is_map);
        let note = "note: is where the checksums are written, and is left out";
        if is_output && self.notes == Notes::Printed {
            messages::remark_of(entry.path().as_os_str().as_bytes(), note);
        }
        is_output || is_map
    }

    /// Prints a note if no files were found, or block maps or symbolic links were skipped.
    fn note_end(&self) {
        let Self { files, links, maps, .. } = *self;
        if maps > 0 && self.notes == Notes::Printed {
            let what = if maps == 1 { "a block map was" } else { "block maps were" };
            let count = if maps == 1 { String::new() } else { format!("{maps} ") };
            let note = format!("note: {count}{what} left out: -f raw and its name hash one");
            messages::remark_of(self.root.as_os_str().as_bytes(), &note);
        }
        let note = match (files, links) {
            (0, 0) => "note: no file to hash here".into(),
            (_, 0) => return,
            (_, 1) => "note: a symbolic link was not followed".into(),
            (_, links) => format!("note: {links} symbolic links were not followed"),
        };
        if self.notes == Notes::Printed {
            messages::remark_of(self.root.as_os_str().as_bytes(), &note);
        }
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let Some(entry) = self.entries.next() else {
                self.note_end();
                return None;
            };
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let name = error.path().unwrap_or(&self.root).as_os_str().to_owned();
                    let reason = match error.io_error() {
                        Some(error) => messages::reason(error),
                        None => error.to_string(),
                    };
                    return Some((name, Err(Problem::new(reason))));
                }
            };
            let beneath = entry.path().strip_prefix(&self.root).unwrap_or(entry.path());
            // Patterns may also be written as the names are printed.
            let paths = [beneath, entry.path()];
            let file_type = entry.file_type();
            if file_type.is_dir() {
                if entry.depth() > 0 && paths.iter().any(|path| self.filter.excludes(path)) {
                    self.entries.skip_current_dir();
                }
            } else if self.filter.includes(&paths) {
                self.links += u64::from(file_type.is_symlink());
                if file_type.is_file() && !self.leaves_out(&entry) {
                    self.files += 1;
                    return Some((entry.into_path().into(), Ok(Origin::Listed)));
                }
            }
        }
    }
}

/// Unit of the stored blocks of a file in bytes (stat(2)).
const SECTOR: u64 = 512;

/// Size in bytes of the largest pipe buffer that an unprivileged process may ask for by default.
const PIPE_SIZE: usize = 1 << 20;
