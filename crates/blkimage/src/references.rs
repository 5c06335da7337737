//! The gate: the only code that opens a file because an image names it.
//! docs/inside/decisions/references.md says why it opens so little.
//!
//! A hostile image could name any file of this host, and its checksum would reveal the content of that
//! file. A reference is therefore a plain file name, without a protocol or `json:`, and is followed
//! only as far as [`Follow`] allows. A file is examined before it is opened, and only regular files and
//! block devices are opened, because opening a FIFO releases its writer and opening a device runs its
//! driver. As in QEMU, a relative name starts at the folder of the path by which the image was opened,
//! not at the folder of a symbolic link's target.
//!
//! An image on an HTTP or S3 server names other objects in the folder of its URL, and none elsewhere. It names no file of this
//! host, and a file names no URL.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[cfg(feature = "http")]
use blkhttp::Url;
use rustix::io::Errno;

use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::hint::Hint;
#[cfg(feature = "http")]
use crate::location::join;
use crate::options::{Follow, OpenOptions};
use crate::storage::HostFile;
#[cfg(feature = "http")]
use crate::storage::web::Web;
use crate::sys::{self, Found, NodeType};

/// The folder in which an image's relative references are resolved.
pub(crate) enum Folder {
    /// The folder of this path.
    Of(PathBuf),
    /// A folder that was opened through the gate.
    Opened(OwnedFd),
    /// The folder of this URL.
    #[cfg(feature = "http")]
    Url(Url),
    /// The image has no known path.
    Unknown,
}

impl Folder {
    /// Returns whether a name that is not ASCII could not be opened because nothing here has it.
    pub fn lacks(&self, name: &[u8], error: &Error) -> bool {
        let cause = error.io_error().and_then(Errno::from_io_error);
        match self {
            // Names of objects are text.
            #[cfg(feature = "http")]
            Self::Url(_) => std::str::from_utf8(name).is_err(),
            // Some file systems take only names in UTF-8.
            _ => matches!(cause, Some(Errno::NOENT | Errno::ILSEQ)) && !name.is_ascii(),
        }
    }
}

/// A reference as recorded in an image.
#[derive(Clone, Copy)]
pub(crate) struct Reference<'a> {
    /// Kind of the reference, as in "backing file" or "data file".
    pub what: &'static str,
    pub name: &'a [u8],
}

/// A file that was opened through the gate.
pub(crate) struct Opened {
    pub file: OpenedFile,
    /// Name for messages. With [`Follow::Any`], the path by which it was opened.
    pub name: PathBuf,
    pub folder: Folder,
}

/// A file or object that the gate let through.
pub(crate) enum OpenedFile {
    Local(File),
    #[cfg(feature = "http")]
    Object(Web),
}

/// Opens the file that `image`, which is in `folder`, refers to.
pub(crate) fn open(
    options: &OpenOptions,
    image: &HostFile,
    folder: &Folder,
    reference: Reference<'_>,
) -> Result<Opened> {
    let gate = Gate { image, reference };
    let name = gate.plain_name()?;
    match (options.follow, folder) {
        // No option of the user helps.
        (_, Folder::Unknown) => Err(gate.refuse_without_folder()),
        (Follow::None, _) => {
            Err(gate.refuse("and no reference is followed").with_hint(Hint::Follow))
        }
        #[cfg(feature = "http")]
        (_, Folder::Url(image)) => gate.open_object(options, image, name),
        (Follow::Beneath, _) => gate.open_beneath(folder, name),
        (Follow::Any, _) => gate.open_any(folder, name),
    }
}

struct Gate<'a> {
    image: &'a HostFile,
    reference: Reference<'a>,
}

impl<'a> Gate<'a> {
    /// Returns the name. Fails unless it is a plain file name.
    fn plain_name(&self) -> Result<&'a Path> {
        let name = self.reference.name;
        if name.contains(&0) {
            return Err(self.refuse("which contains a NUL byte"));
        }
        if name.starts_with(b"json:") {
            return Err(self.refuse("which is a JSON description and is never followed"));
        }
        if has_protocol(name) {
            return Err(self.refuse("which names a protocol and is never followed"));
        }
        Ok(Path::new(OsStr::from_bytes(name)))
    }

    fn open_beneath(&self, folder: &Folder, name: &Path) -> Result<Opened> {
        let opened;
        let (directory, folder_path) = match folder {
            Folder::Of(path) => {
                let parent = parent(path);
                opened = sys::open_folder(parent).map_err(|e| self.open_error(e))?;
                (&opened, Some(parent))
            }
            Folder::Opened(directory) => (directory, None),
            _ => return Err(self.refuse_without_folder()),
        };
        let relative = self.relative(directory, folder_path, name)?;
        let found = sys::find_beneath(directory, &relative).map_err(|e| self.open_error(e))?;
        let file = self.open_found(&found, |node_type| node_type == NodeType::Regular)?;
        let inner = match relative.parent() {
            Some(sub) if sub != Path::new("") => sys::open_folder_beneath(directory, sub),
            _ => directory.try_clone(),
        };
        let inner = inner.map_err(|e| self.open_error(e))?;
        let file = OpenedFile::Local(file);
        Ok(Opened { file, name: self.display_name(name), folder: Folder::Opened(inner) })
    }

    fn open_any(&self, folder: &Folder, name: &Path) -> Result<Opened> {
        let path = match folder {
            _ if name.is_absolute() => name.to_path_buf(),
            Folder::Of(path) => parent(path).join(name),
            _ => return Err(self.refuse_without_folder()),
        };
        let found = sys::find(&path).map_err(|e| self.open_error(e))?;
        let is_allowed = |t| matches!(t, NodeType::Regular | NodeType::BlockDevice);
        let file = self.open_found(&found, is_allowed)?;
        let file = OpenedFile::Local(file);
        Ok(Opened { file, name: path.clone(), folder: Folder::Of(path) })
    }

    /// Opens the object with this name in the folder of the object `image`, on the same server.
    #[cfg(feature = "http")]
    fn open_object(&self, options: &OpenOptions, image: &Url, name: &Path) -> Result<Opened> {
        let name = name.to_str().ok_or_else(|| self.refuse("which is not UTF-8"))?;
        let leads_out = || self.refuse("which leads out of the image's own folder");
        let url = join(image, name).ok_or_else(leads_out)?;
        let object = Web::at(url.clone(), options).map_err(|error| {
            let Reference { what, name } = self.reference;
            let reason = match error.io_error() {
                Some(cause) => cause.to_string(),
                None => error.reason().to_owned(),
            };
            let reason = format!("cannot open its {what} \"{}\": {reason}", excerpt(name));
            self.image.error(ErrorKind::Reference, reason)
        })?;
        if !object.has_ranges() {
            return Err(object.without_ranges("a chain of images"));
        }
        let name = object.name().to_owned();
        Ok(Opened { file: OpenedFile::Object(object), name, folder: Folder::Url(url) })
    }

    /// Returns `name` relative to the folder. Strips the folder's path from an absolute name, either
    /// the real path or the one that the caller used. The later lookup by the system checks that the
    /// file really is there.
    fn relative(
        &self,
        directory: &OwnedFd,
        folder_path: Option<&Path>,
        name: &Path,
    ) -> Result<PathBuf> {
        if !name.is_absolute() {
            return Ok(name.to_path_buf());
        }
        let real = sys::path_of(directory).ok();
        let named = folder_path.and_then(|path| std::path::absolute(path).ok());
        let inside = [real, named].into_iter().flatten().find_map(|folder| {
            name.strip_prefix(folder).ok().filter(|rest| *rest != Path::new(""))
        });
        inside.map(Path::to_path_buf).ok_or_else(|| self.refuse_outside())
    }

    /// Opens a file that was looked up, unless its type is not allowed.
    fn open_found(&self, found: &Found<'_>, is_allowed: impl Fn(NodeType) -> bool) -> Result<File> {
        let node_type = found.stamp.node_type;
        if is_allowed(node_type) {
            if found.is_made_up() {
                return Err(self.refuse("which the kernel makes up as it is read"));
            }
            found.open().map_err(|e| self.open_error(e))
        } else if node_type == NodeType::BlockDevice {
            Err(self.refuse("which is a block device").with_hint(Hint::FollowAny))
        } else {
            Err(self.refuse("which is not a regular file"))
        }
    }

    fn display_name(&self, name: &Path) -> PathBuf {
        match self.image.name().parent() {
            Some(folder) => folder.join(name),
            None => name.to_path_buf(),
        }
    }

    fn open_error(&self, error: io::Error) -> Error {
        match Errno::from_io_error(&error) {
            Some(Errno::XDEV) => self.refuse_outside(),
            Some(Errno::LOOP) => {
                self.refuse("which leads through symbolic links that are not followed")
                    .with_hint(Hint::FollowAny)
            }
            Some(Errno::NOSYS) => self
                .refuse(
                    "and openat2 (Linux 5.6), which keeps references beneath their folder, is not \
                     available, or a filter of system calls (RestrictSUIDSGID= of systemd, an old container runtime) \
                     hides it",
                )
                .with_hint(Hint::FollowAny),
            _ => {
                let Reference { what, name } = self.reference;
                let reason = format!("cannot open its {what} \"{}\"", excerpt(name));
                self.image.error(ErrorKind::Reference, reason).because(error)
            }
        }
    }

    fn refuse_outside(&self) -> Error {
        self.refuse("which leads out of the image's own folder").with_hint(Hint::FollowAny)
    }

    fn refuse_without_folder(&self) -> Error {
        self.refuse("relative to a folder that is unknown here: name the image by its path")
    }

    fn refuse(&self, reason: &str) -> Error {
        let Reference { what, name } = self.reference;
        let reason = format!("names the {what} \"{}\", {reason}", excerpt(name));
        self.image.error(ErrorKind::Reference, reason)
    }
}

/// Returns the folder of a path, or "." if it has none.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Returns whether the name has a protocol. As in QEMU, that is a colon before the first slash.
fn has_protocol(name: &[u8]) -> bool {
    name.iter().find(|byte| matches!(byte, b':' | b'/')) == Some(&b':')
}

#[cfg(test)]
mod tests;
