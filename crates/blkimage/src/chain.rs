//! A chain that is being opened: its layers so far, its files, and the state that formats share.
//!
//! A format opens the files that an image names only through [`Chain::follow`] and
//! [`Chain::follow_backing`]. They pass every reference through the gate and keep a file from occurring
//! twice in a chain.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

#[cfg(feature = "http")]
use blkhttp::Url;

use crate::caches::{Caches, LayerCaches};
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::hint::Hint;
use crate::layer::Layer;
use crate::member::Member;
use crate::options::OpenOptions;
use crate::probe::Format;
use crate::references::{self, Folder, Opened, OpenedFile, Reference};
use crate::storage::local::access::Access;
use crate::storage::local::file::LocalFile;
#[cfg(feature = "http")]
use crate::storage::web::Web;
use crate::storage::{HostFile, Storage};
use crate::warnings::{Warning, Warnings};

/// A chain that is being opened.
pub(crate) struct Chain<'a> {
    pub options: &'a OpenOptions,
    /// Layers opened so far, top first.
    pub layers: Vec<Box<dyn Layer>>,
    /// The images of the layers, top first.
    pub members: Vec<Member>,
    pub warnings: Warnings,
    /// Number of bytes read from all files of the chain.
    pub bytes_read: Arc<AtomicU64>,
    caches: Arc<Caches>,
    /// Every file of the chain.
    identities: Vec<Identity>,
}

/// What tells a file of a chain from the others.
#[derive(PartialEq, Eq)]
enum Identity {
    /// The device and the inode of a local file.
    File(u64, u64),
    /// The URL of an object.
    #[cfg(feature = "http")]
    Url(Url),
}

/// Fails unless a file is the one over which an image was created.
type ParentCheck = Box<dyn FnOnce(&HostFile) -> Result<()>>;

/// A file that becomes the next layer.
pub(crate) struct Candidate {
    pub file: Arc<HostFile>,
    /// Folder in which its references are resolved.
    pub folder: Folder,
    pub format: Format,
    /// Offset of its content in the file. 0 unless the image is raw.
    pub start: u64,
}

/// An open layer, and the backing file that it names.
pub(crate) struct OpenedLayer {
    pub layer: Box<dyn Layer>,
    pub backing: Option<BackingFile>,
}

/// A backing file as recorded in an image.
pub(crate) struct BackingFile {
    pub name: Vec<u8>,
    /// Format that the image records.
    pub format: Option<Vec<u8>>,
    /// Check of the file, if the format records what its parent is.
    pub check: Option<ParentCheck>,
    /// See [`Chain::follow_either`].
    pub other_name: OtherName,
}

/// A second name by which a file is sought. The error says why a name that is needed is not known.
pub(crate) type OtherName = std::result::Result<Option<Vec<u8>>, String>;

impl BackingFile {
    /// Creates a parent of the format of its child, which `check` recognises.
    pub fn parent(
        name: Vec<u8>,
        format: Format,
        check: impl FnOnce(&HostFile) -> Result<()> + 'static,
    ) -> Self {
        let format = Some(format.name().into());
        Self { name, format, check: Some(Box::new(check)), other_name: Ok(None) }
    }
}

impl<'a> Chain<'a> {
    pub fn new(options: &'a OpenOptions) -> Self {
        let (layers, members, warnings, identities) = Default::default();
        let (caches, bytes_read) = Default::default();
        Self { options, layers, members, warnings, bytes_read, caches, identities }
    }

    /// Returns the requested snapshot for the image on top, and `None` for all others.
    pub fn snapshot(&self) -> Option<&'a str> {
        if self.layers.is_empty() { self.options.snapshot.as_deref() } else { None }
    }

    /// Returns the caches of one more layer.
    pub fn layer_caches(&self) -> LayerCaches {
        self.caches.layer()
    }

    /// Records a warning for the user about an image that can be read.
    pub fn warn(&mut self, warning: Warning) {
        self.warnings.add(warning);
    }

    /// Wraps any storage as a file of the chain.
    pub fn host_file(&self, storage: Box<dyn Storage>, name: &Path) -> Arc<HostFile> {
        let file = HostFile::new(name.into(), storage, self.bytes_read.clone());
        Arc::new(file.with_holes(self.options.holes))
    }

    /// Adds a file of this host to the chain as an image. Fails if the file is in the chain already.
    /// For `shared`, see [`Access`].
    pub fn local_file(&mut self, file: File, name: &Path, shared: bool) -> Result<Arc<HostFile>> {
        let file = self.local_storage(file, name, shared)?;
        Ok(self.host_file(Box::new(file), name))
    }

    /// Adds a file of this host to the chain like [`local_file`](Self::local_file), and returns its bytes.
    pub fn local_storage(&mut self, file: File, name: &Path, shared: bool) -> Result<LocalFile> {
        let OpenOptions { cache, force_share, .. } = *self.options;
        let file = LocalFile::new(file, name, Access { cache, force_share, shared })?;
        let (device, inode) = file.identity();
        self.identify(Identity::File(device, inode), name)?;
        for warning in file.warnings() {
            self.warn(Warning::new(name, warning));
        }
        Ok(file)
    }

    /// Adds an object on a server to the chain as an image. Fails if it is in the chain already.
    #[cfg(feature = "http")]
    pub fn object(&mut self, object: Arc<Web>, name: &Path) -> Result<Arc<HostFile>> {
        self.identify(Identity::Url(object.url().clone()), name)?;
        Ok(self.host_file(Box::new(object), name))
    }

    /// Fails if a file is in the chain already.
    fn identify(&mut self, file: Identity, name: &Path) -> Result<()> {
        if self.identities.contains(&file) {
            let reason = "is a part of its own backing chain";
            return Err(Error::new(ErrorKind::Reference, name, reason));
        }
        self.identities.push(file);
        Ok(())
    }

    /// Adds an image to those that users see.
    pub fn add_image(&mut self, image: &Candidate) {
        let files = vec![image.file.clone()];
        self.members.push(Member {
            format: image.format,
            virtual_size: None,
            is_served: false,
            files,
            vpc_sizes: None,
        });
    }

    /// Adds files to the image that was added last.
    pub fn add_files(&mut self, files: impl Iterator<Item = Arc<HostFile>>) {
        if let Some(member) = self.members.last_mut() {
            member.files.extend(files);
        }
    }

    /// Opens a file that `image` refers to, through the gate.
    pub fn follow(
        &mut self,
        image: &Candidate,
        what: &'static str,
        name: &[u8],
    ) -> Result<(Arc<HostFile>, Folder)> {
        let reference = Reference { what, name };
        let Opened { file, name, folder } =
            references::open(self.options, &image.file, &image.folder, reference)?;
        let file = match file {
            OpenedFile::Local(file) => self.local_file(file, &name, false)?,
            #[cfg(feature = "http")]
            OpenedFile::Object(object) => self.object(Arc::new(object), &name)?,
        };
        Ok((file, folder))
    }

    /// Opens a file that `image` refers to like [`follow`](Self::follow), by its other name if there is no file with the first.
    pub fn follow_either(
        &mut self,
        image: &Candidate,
        what: &'static str,
        name: &[u8],
        other: OtherName,
    ) -> Result<(Arc<HostFile>, Folder)> {
        let error = match self.follow(image, what, name) {
            Err(error) if image.folder.lacks(name, &error) => error,
            found => return found,
        };
        match other {
            Ok(None) => Err(error),
            Ok(Some(other)) => self.follow(image, what, &other),
            Err(reason) => {
                let reason = format!("names the {what} \"{}\", {reason}", excerpt(name));
                Err(image.file.error(ErrorKind::Reference, reason))
            }
        }
    }

    /// Opens the backing file of `image`, through the gate.
    pub fn follow_backing(&mut self, image: &Candidate, backing: BackingFile) -> Result<Candidate> {
        let format = self.backing_format(image, &backing)?;
        let BackingFile { name, check, other_name, .. } = backing;
        let (file, folder) = self.follow_either(image, "backing file", &name, other_name)?;
        if let Some(check) = check {
            check(&file)?;
        }
        Ok(Candidate { file, folder, format, start: 0 })
    }

    /// Fails if the chain cannot take one more image beneath its layers and `others`.
    pub fn check_length(&self, file: &HostFile, others: usize) -> Result<()> {
        if self.layers.len() + others < MAX_CHAIN {
            return Ok(());
        }
        let reason = format!("backing chain is longer than {MAX_CHAIN} files");
        Err(file.error(ErrorKind::Reference, reason))
    }

    /// Returns the format of a backing file. It is never detected, because a guest can write
    /// any header into a raw file.
    fn backing_format(&self, image: &Candidate, backing: &BackingFile) -> Result<Format> {
        let refuse = |reason: String| {
            let name = excerpt(&backing.name);
            let reason = format!("names the backing file \"{name}\", {reason}");
            image.file.error(ErrorKind::Reference, reason)
        };
        let recorded = backing.format.as_deref().filter(|recorded| !recorded.is_empty());
        let Some(recorded) = recorded else {
            return match self.options.backing_format {
                Some(format) => Ok(format),
                None => Err(refuse("whose format is not recorded".into()).with_hint(
                    // The others have no field for it.
                    match image.format {
                        Format::Qcow2 => Hint::RecordFormat,
                        _ => Hint::BackingFormat,
                    },
                )),
            };
        };
        let format = std::str::from_utf8(recorded).ok().and_then(|name| name.parse().ok());
        match format {
            Some(format) => Ok(format),
            None => Err(refuse(format!("whose format \"{}\" is not known", excerpt(recorded)))),
        }
    }
}

/// Maximum number of images in a chain. Real chains have tens of images. Each one costs a descriptor, memory and a
/// lookup per run.
/// Limit in images.
pub(crate) const MAX_CHAIN: usize = 200;
