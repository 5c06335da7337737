//! What a name stands for: standard input, a pipe, an image, a folder, a URI.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use blkimage::Location;
use walkdir::WalkDir;

use super::filter::Filter;
use super::notes::Notes;
use super::program::PROGRAM;
use super::report::Failure;
use crate::{messages, stdio};

/// What a name stands for, opened where opening is not the image reader's business.
pub enum Input<'a> {
    /// An export of an NBD server.
    Uri(&'a str),
    /// A file or block device, by its path.
    Path(&'a Path),
    /// Standard input that is a file or block device, to be read from `start` on.
    Descriptor {
        /// A descriptor of its own, which shares its offset with standard input.
        file: File,
        /// The offset.
        start: u64,
    },
    /// Bytes without a size: a pipe, a character device or a file of procfs.
    Stream(File),
}

impl<'a> Input<'a> {
    /// Finds out what `name` stands for, as far as its form tells.
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

/// Where a name comes from, and so how far it is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user wrote it.
    CommandLine,
    /// It stands in a check file or a folder, which may come from anywhere. Pipes, character devices and
    /// what the kernel makes up are not opened: they might wait for ever, and opening and reading them may
    /// do something.
    Listed,
}

/// Opens what can only be read once and in order. A FIFO waits for a writer.
pub fn open_stream(path: &Path) -> io::Result<File> {
    File::open(path).map(widen)
}

/// A pipe of the size that one read takes needs fewer turns with its writer.
fn widen(file: File) -> File {
    // What is no pipe stays as it is, and so does one whose owner may have no more.
    let _ = rustix::pipe::fcntl_setpipe_size(&file, PIPE_SIZE);
    file
}

/// Whether a file that claims to be empty is not, as those of procfs. Its offset stays where it is.
fn has_content(file: &File) -> io::Result<bool> {
    Ok(file.read_at(&mut [0], 0)? > 0)
}

/// Whether `name` is a URI, and so no file's.
pub fn is_uri(name: &OsStr) -> bool {
    Location::new(name).is_uri()
}

/// An image to hash, or why there is none.
pub type Found = (OsString, Result<Origin, Failure>);

/// `name`, or with `recursive` the regular files beneath it that the filter includes, if it is a folder: in
/// the order of their names, without following symbolic links.
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

/// The files beneath a folder.
struct Walk {
    root: PathBuf,
    entries: walkdir::IntoIter,
    filter: Filter,
    notes: Notes,
    files: u64,
    links: u64,
}

impl Walk {
    fn new(root: &Path, filter: Filter, notes: Notes) -> Self {
        let entries = WalkDir::new(root).sort_by_file_name().into_iter();
        Self { root: root.to_owned(), entries, filter, notes, files: 0, links: 0 }
    }

    /// Says at the end what a user could miss.
    fn note_end(&self) {
        let Self { files, links, .. } = *self;
        let note = match (files, links) {
            (0, 0) => "note: no file to hash here".into(),
            (_, 0) => return,
            (_, 1) => "note: a symbolic link was not followed".into(),
            (_, links) => format!("note: {links} symbolic links were not followed"),
        };
        if self.notes == Notes::Printed {
            messages::remark_of(PROGRAM, self.root.as_os_str().as_bytes(), &note);
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
                    return Some((name, Err(Failure::new(reason))));
                }
            };
            let beneath = entry.path().strip_prefix(&self.root).unwrap_or(entry.path());
            let file_type = entry.file_type();
            if file_type.is_dir() {
                if entry.depth() > 0 && self.filter.excludes(beneath) {
                    self.entries.skip_current_dir();
                }
            } else if self.filter.includes(beneath) {
                self.links += u64::from(file_type.is_symlink());
                if file_type.is_file() {
                    self.files += 1;
                    return Some((entry.into_path().into(), Ok(Origin::Listed)));
                }
            }
        }
    }
}

/// What an unprivileged user may have.
const PIPE_SIZE: usize = 1 << 20;
