//! The files of an image: in a folder, or in a tar archive.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::detect::compression;
use crate::container::entries::{Entries, Rules};
use crate::container::kind::{file_at, whole};
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::options::OpenOptions;
use crate::storage::Storage;
use crate::storage::local::access::Access;
use crate::storage::local::file::LocalFile;
use crate::storage::part::Part;
use crate::sys::{self, NodeType};
use crate::tar::{Reader, is_tar};

/// The files of an image by name.
pub(super) struct Files {
    name: PathBuf,
    place: Place,
}

enum Place {
    Archive { storage: Arc<dyn Storage>, entries: Entries },
    Folder { folder: OwnedFd, access: Access },
}

impl Files {
    pub fn in_archive(storage: Arc<dyn Storage>, name: &Path) -> Result<Self> {
        // Fails for an archive that container runtimes decompress first.
        compression(&*storage, name)?;
        let entries = Entries::new(&whole(storage.clone(), name), RULES)?;
        Ok(Self { name: name.into(), place: Place::Archive { storage, entries } })
    }

    pub fn in_folder(path: &Path, options: &OpenOptions) -> Result<Self> {
        let folder = sys::open_folder(path);
        let folder =
            folder.map_err(|e| Error::new(ErrorKind::Open, path, "cannot open").because(e))?;
        let OpenOptions { cache, force_share, .. } = *options;
        let access = Access { cache, force_share, shared: false };
        Ok(Self { name: path.into(), place: Place::Folder { folder, access } })
    }

    /// Returns the name of the folder or the archive.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Returns whether there is such a regular file.
    pub fn has(&self, name: &str) -> bool {
        match &self.place {
            Place::Archive { entries, .. } => entries.find(name.as_bytes()).is_some(),
            Place::Folder { folder, .. } => sys::find_beneath(folder, Path::new(name))
                .is_ok_and(|found| found.stamp.node_type == NodeType::Regular),
        }
    }

    /// Returns whether an archive has a member of this name that is no file. Some programs follow a link.
    pub fn has_other(&self, name: &str) -> bool {
        match &self.place {
            Place::Archive { entries, .. } => entries.has(name.as_bytes()) && !self.has(name),
            Place::Folder { .. } => false,
        }
    }

    /// Opens a regular file. Fails if there is none, or if a symbolic link leads out of the folder.
    pub fn open(&self, name: &[u8]) -> Result<Arc<dyn Storage>> {
        match &self.place {
            Place::Archive { storage, entries } => {
                let entry = entries.find(name).ok_or_else(|| self.missing(name))?;
                let (offset, size) = (entry.offset, entry.size);
                Ok(Arc::new(Part { storage: storage.clone(), offset, size }))
            }
            Place::Folder { folder, access } => {
                let path = Path::new(std::ffi::OsStr::from_bytes(name));
                let full = self.name.join(path);
                let error = |e: io::Error| match e.kind() {
                    io::ErrorKind::NotFound => self.missing(name),
                    _ => Error::new(ErrorKind::Open, &*full, "cannot open").because(e),
                };
                let found = sys::find_beneath(folder, path).map_err(error)?;
                if found.stamp.node_type != NodeType::Regular || found.is_made_up() {
                    let reason = "is not a regular file";
                    return Err(Error::new(ErrorKind::FileType, &*full, reason));
                }
                let file = found.open().map_err(error)?;
                Ok(Arc::new(LocalFile::new(file, &full, *access)?))
            }
        }
    }

    pub fn error(&self, kind: ErrorKind, reason: impl Into<String>) -> Error {
        Error::new(kind, &*self.name, reason)
    }

    pub fn corrupt(&self, reason: impl Into<String>) -> Error {
        self.error(ErrorKind::Corrupt, reason)
    }

    fn missing(&self, name: &[u8]) -> Error {
        self.corrupt(format!("lacks the file \"{}\"", excerpt(name)))
    }
}

/// Returns whether the file at `path` is an archive of images.
pub(super) fn is_archive_at(path: &Path) -> bool {
    let plain = |file| Plain::new(file).is_ok_and(|it| is_archive(&(Arc::new(it) as _)));
    file_at(path, is_tar).is_ok_and(|file| file.is_some_and(plain))
}

/// Returns whether this is a tar archive of images: with the file `oci-layout`, or `manifest.json` as Docker writes it.
/// It has no descriptor of an appliance, and few other members are before these.
pub(super) fn is_archive(storage: &Arc<dyn Storage>) -> bool {
    let file = whole(storage.clone(), Path::new(""));
    let mut reader = Reader::new(&file, MAX_HEADERS);
    let mut others = 0;
    while let Ok(Some(entry)) = reader.entry() {
        let name = entry.name.strip_prefix(b"./").unwrap_or(&entry.name);
        match name {
            b"oci-layout" | b"manifest.json" if entry.is_file() => return true,
            b"" | b"." | b"index.json" | b"repositories" => {}
            _ if name.starts_with(b"blobs/") => {}
            // Of older archives of Docker.
            _ if [&b".json"[..], b".tar", b"/json", b"/VERSION", b"/"]
                .iter()
                .any(|it| name.ends_with(it)) => {}
            _ if name.ends_with(b".ovf") => return false,
            _ if others == MAX_OTHERS => return false,
            _ => others += 1,
        }
    }
    false
}

/// A file that is only looked at.
struct Plain {
    file: File,
    size: u64,
}

impl Plain {
    fn new(file: File) -> io::Result<Self> {
        let size = file.metadata()?.len();
        Ok(Self { file, size })
    }
}

impl Storage for Plain {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }
}

/// Archives of Docker have links to layers under other names.
const RULES: Rules = Rules { max_headers: MAX_HEADERS, special: true, sparse: false };

/// Maximum number of headers of members of an archive of container images, which has a member for each blob, with up
/// to three headers.
/// Limit in headers.
const MAX_HEADERS: u32 = 10_000;

/// Maximum number of members of other names before the file that makes an archive one of images.
/// Limit in members.
const MAX_OTHERS: u32 = 16;
