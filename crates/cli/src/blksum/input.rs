//! What a name stands for: standard input, a pipe, an image, a folder, a URI.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

use blkimage::Location;
use walkdir::WalkDir;

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

/// `name`, or with `recursive` the regular files beneath it if it is a folder: in the order of
/// their names, without following symbolic links.
pub fn expand(
    name: &OsStr,
    recursive: bool,
) -> Box<dyn Iterator<Item = (OsString, Result<Origin, Failure>)> + Send> {
    if !recursive || name == "-" || is_uri(name) || !Path::new(name).is_dir() {
        return Box::new(std::iter::once((name.to_owned(), Ok(Origin::CommandLine))));
    }
    let root = name.to_owned();
    let entries = WalkDir::new(name).sort_by_file_name().into_iter();
    Box::new(entries.filter_map(move |entry| match entry {
        Ok(entry) if entry.file_type().is_file() => {
            Some((entry.into_path().into(), Ok(Origin::Listed)))
        }
        Ok(_) => None,
        Err(error) => {
            let name = error.path().map_or(root.clone(), |path| path.as_os_str().to_owned());
            let reason = match error.io_error() {
                Some(error) => messages::reason(error),
                None => error.to_string(),
            };
            Some((name, Err(Failure::new(reason))))
        }
    }))
}

/// What an unprivileged user may have.
const PIPE_SIZE: usize = 1 << 20;
