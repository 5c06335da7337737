//! What all containers answer, and what a row of the table of kinds says.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::name::has_extension;
use crate::error::{Error, ErrorKind, Result};
use crate::image::Image;
use crate::options::OpenOptions;
use crate::probe::PROBE_SIZE;
use crate::storage::local::access::Access;
use crate::storage::local::file::{LocalFile, find};
use crate::storage::{HostFile, Storage};
use crate::sys::NodeType;

/// An open container: a file or a folder that holds disks and other members.
pub trait Container: Send + Sync {
    /// Returns the names of the disks, in the order of the container.
    ///
    /// An `.ova` has the members that its descriptor names, and otherwise those with a known image format. The disks of
    /// an OCI image are the layers that are disks, and the files in the folder `disk` of a container image.
    ///
    /// # Errors
    ///
    /// Fails if a descriptor, an index or a manifest cannot be read, is invalid or too long, names a disk that is
    /// missing, is stored in a way that is not read or has another size or digest than stated, or if there are too many
    /// disks.
    fn disks(&self) -> Result<Vec<Vec<u8>>>;

    /// Opens a disk or another member as an image.
    ///
    /// # Errors
    ///
    /// Fails if the container has no such member or several, if the member is compressed in a way that is not read, or as
    /// [`OpenOptions::open_storage`] does.
    fn open(&self, options: &OpenOptions, member: &[u8]) -> Result<Image>;

    /// Returns whether the container is decoded from start to end only, so that [`disks`](Self::disks) decodes all of it. Its
    /// only disk is then better opened by the name of the container, which decodes it once.
    fn is_stream(&self) -> bool {
        false
    }

    /// Opens the only disk of a container that [is a stream](Self::is_stream). That there is no other one is checked at the end
    /// of a pass.
    ///
    /// # Errors
    ///
    /// Fails as [`open`](Self::open) does, and if there is no disk or the container is no stream.
    fn open_first(&self, options: &OpenOptions) -> Result<Image> {
        match &*self.disks()? {
            [disk] => self.open(options, disk),
            disks => {
                let reason = format!("the container has {} disks", disks.len());
                Err(Error::new(ErrorKind::Argument, "", reason))
            }
        }
    }

    /// Returns the manifest.
    ///
    /// # Errors
    ///
    /// Fails if there is none or several, if it cannot be read or is too long, or if a disk is missing.
    fn manifest(&self) -> Result<Manifest>;

    /// Returns the own name of the member that [`open`](Self::open) opens by this name. Some have several.
    ///
    /// # Errors
    ///
    /// Fails if the container has no such member, or several.
    fn resolve(&self, name: &[u8]) -> Result<Vec<u8>> {
        Ok(name.to_vec())
    }
}

/// The checksums that a container has of its members.
pub struct Manifest {
    /// A check file of members. An OCI image's is made of the digests of all blobs to which the index leads.
    pub text: Vec<u8>,
    /// The own names of disks that it has to list, so that no disk goes unchecked.
    pub disks: Vec<Vec<u8>>,
    /// The own names of disks whose parts have checksums that every read compares. They need no line: to check one is to read
    /// it.
    pub read: Vec<Vec<u8>>,
}

/// A kind of containers.
pub(super) struct Kind {
    /// With an article, for errors.
    pub noun: &'static str,
    /// The ends of names that files of other kinds do not have. They decide before the content does. Without one, a file without
    /// disks may be an image.
    pub extensions: &'static [&'static [u8]],
    /// Returns whether a path stands for the disks in it although it has no such name.
    pub is_at: fn(&Path) -> bool,
    /// Returns whether the file at a path may be such a container by its first bytes.
    pub begins: fn(&Path, &[u8]) -> bool,
    /// Opens the container in a folder, if there can be one. Returns `None` if there is none.
    pub open_folder: Option<fn(&OpenOptions, &Path) -> Opened>,
    /// The ends of the names of such containers on servers.
    #[cfg_attr(not(feature = "http"), allow(dead_code))]
    pub archives: &'static [&'static [u8]],
    /// Opens the container in a storage of this name. Returns `None` if what it holds is no container of this kind.
    pub open_storage: fn(&OpenOptions, Arc<dyn Storage>, &Path) -> Opened,
    /// Returns the files with the bytes of the disks, if such a container can be a folder.
    pub files: Option<fn(&Path) -> Paths>,
}

/// A container, if there is one.
pub(super) type Opened = Result<Option<Box<dyn Container>>>;

pub(super) type Paths = Box<dyn Iterator<Item = PathBuf>>;

impl Kind {
    /// Opens the container at a path. Returns `None` if what is there is no container of this kind.
    pub fn open(&self, options: &OpenOptions, path: &Path) -> Opened {
        if let Some(open_folder) = self.open_folder
            && let Some(container) = open_folder(options, path)?
        {
            return Ok(Some(container));
        }
        match open_file(options, path, |head| (self.begins)(path, head))? {
            Some(storage) => (self.open_storage)(options, storage, path),
            None => Ok(None),
        }
    }

    /// Returns whether the name alone says that a path is of this kind.
    pub fn has_name(&self, path: &Path) -> bool {
        let name = path.as_os_str().as_bytes();
        self.extensions.iter().any(|end| has_extension(name, end)) && !path.is_dir()
    }

    /// Returns whether this is the name of such a container on a server.
    #[cfg(feature = "http")]
    pub fn has_archive_name(&self, name: &[u8]) -> bool {
        self.archives.iter().any(|end| has_extension(name, end))
    }
}

/// Opens the file at `path` as the storage of a container if it begins in a way that `begins` accepts.
fn open_file(
    options: &OpenOptions,
    path: &Path,
    begins: impl Fn(&[u8]) -> bool,
) -> Result<Option<Arc<dyn Storage>>> {
    let Some(file) = file_at(path, begins)? else { return Ok(None) };
    let OpenOptions { cache, force_share, .. } = *options;
    let file = LocalFile::new(file, path, Access { cache, force_share, shared: false })?;
    Ok(Some(Arc::new(file)))
}

/// Opens the regular file at `path`, without a look at locks, if it begins in a way that `begins` accepts.
pub(super) fn file_at(path: &Path, begins: impl Fn(&[u8]) -> bool) -> Result<Option<File>> {
    let found = find(path)?;
    if found.stamp.node_type != NodeType::Regular {
        return Ok(None);
    }
    let error = |e| Error::new(ErrorKind::Open, path, "cannot open").because(e);
    let file = found.open().map_err(error)?;
    let mut head = vec![0; found.stamp.size.min(PROBE_SIZE as u64) as usize];
    Ok((file.read_exact_at(&mut head, 0).is_ok() && begins(&head)).then_some(file))
}

/// Returns a storage as a file for a reader.
pub(super) fn whole(storage: Arc<dyn Storage>, name: &Path) -> HostFile {
    HostFile::new(name.into(), Box::new(storage), Arc::default())
}
