//! Where a copy may go.
//!
//! A [`FileName`] is refused before anything is opened or created, a [`Place`] before the source is, and the rest by
//! [`Place::into_destination`], when the source is known. Nothing is written meanwhile. [`Found`] is what a resumed copy is
//! compared with, and tells at the end whether the name still leads to the copy.

mod found;
mod refused;
mod related;

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use blkimage::{ErrorKind, Format, Identity, Image, OpenOptions};
use rustix::fs::OFlags;

pub use self::found::Found;
pub use self::refused::Refused;
use crate::destination::Destination;
#[cfg(feature = "nbd")]
use crate::destination::Export;
use crate::destination::Local;
use crate::zeros::Zeros;

/// What becomes of what a destination holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays: a file that is not empty is refused, and so is a device or an export that holds something.
    #[default]
    Refuse,
    /// It is overwritten, and the file may have the name of another format.
    Overwrite,
    /// Only what differs is written.
    Update,
    /// It is an interrupted copy, which goes on. [`Found::check_resumed`] judges that.
    Resume,
}

/// What a destination must not be, apart from a file of the source.
#[derive(Clone, Copy, Debug, Default)]
pub struct Others<'a> {
    /// The file of the source. A device is not copied to its own disk, partitions or loop file, nor the reverse.
    pub source: Option<&'a Metadata>,
    /// Other files that are read or written, with the words for the error: "the file of the map".
    pub files: &'a [(Identity, &'a str)],
}

/// The name of a destination that is a file or a device of this host. Nothing is open.
#[derive(Debug)]
pub struct FileName {
    path: PathBuf,
    existing: Existing,
    is_device: bool,
}

impl FileName {
    /// Takes the name of a file, which need not exist, or of a block device.
    ///
    /// # Errors
    ///
    /// Fails if it is something else, or the name is that of an image in another format, unless it is overwritten.
    pub fn new(path: &Path, existing: Existing) -> Result<Self, Refused> {
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        match extension.to_ascii_lowercase().parse() {
            Ok(format) if format != Format::Raw && existing != Existing::Overwrite => {
                return Err(Refused::Format(format));
            }
            _ => {}
        }
        let found = fs::metadata(path).map(|metadata| metadata.file_type());
        let is_device = found.as_ref().is_ok_and(FileTypeExt::is_block_device);
        if found.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
            && path
                .parent()
                .and_then(|it| it.canonicalize().ok())
                .is_some_and(|it| it == Path::new("/dev"))
        {
            return Err(Refused::NoDevice);
        }
        if found.is_ok_and(|found| !is_device && !found.is_file()) {
            return Err(Refused::Kind);
        }
        Ok(Self { path: path.to_owned(), existing, is_device })
    }

    /// Returns whether it is the name of a device, for [`open_device`](Self::open_device). A file is opened by the caller, for
    /// [`with_file`](Self::with_file).
    pub fn is_device(&self) -> bool {
        self.is_device
    }

    /// Opens a device that nothing else uses.
    ///
    /// # Errors
    ///
    /// Fails if it is mounted or in use otherwise, and like [`with_file`](Self::with_file).
    pub fn open_device(self, others: &Others<'_>) -> Result<Place, Refused> {
        if !blksys::TELLS_RELATED_DEVICES {
            return Err(Refused::UnknownUses);
        }
        // Nothing else opens a device that is opened so, and it is not mounted.
        let flags = (OFlags::EXCL | OFlags::NONBLOCK).bits() as i32;
        let file = File::options().read(true).write(true).custom_flags(flags).open(&self.path);
        self.with_file(file.map_err(Refused::Open)?, false, others)
    }

    /// Takes the file with this name, open for reading and writing, and locks it (`flock`). `is_new` is whether it was created
    /// for the copy.
    ///
    /// # Errors
    ///
    /// Fails if it is one of the others, another process has locked it, or it holds something that must stay.
    pub fn with_file(
        self,
        file: File,
        is_new: bool,
        others: &Others<'_>,
    ) -> Result<Place, Refused> {
        let Self { path, existing, is_device } = self;
        let metadata = file.metadata().map_err(Refused::Open)?;
        let kind = metadata.file_type();
        if kind.is_block_device() != is_device || kind.is_file() == is_device {
            return Err(Refused::OtherKind);
        }
        let identity = Identity::new(&metadata);
        if let Some((_, name)) = others.files.iter().find(|(other, _)| *other == identity) {
            return Err(Refused::Other((*name).to_owned()));
        }
        if others.source.is_some_and(|source| related::overlap(source, &metadata)) {
            return Err(Refused::Overlaps);
        }
        if let Some((name, is_file)) = related::mounted_loop(&metadata) {
            let is = if is_file { "is the file" } else { "is stored in the file" };
            let reason = format!("{is} of {name}, which is mounted");
            return Err(Refused::Used(blkimage::Error::new(ErrorKind::InUse, &path, reason)));
        }
        if !is_device {
            file.try_lock().map_err(|error| match error {
                TryLockError::WouldBlock => Refused::Busy,
                TryLockError::Error(error) => Refused::Open(error),
            })?;
        }
        if existing == Existing::Refuse && metadata.len() > 0 {
            return Err(Refused::Exists);
        }
        let found = Found {
            name: Some((path.clone(), identity)),
            existing,
            is_new,
            length: metadata.len(),
            is_file: !is_device,
        };
        let local = Local::new(file, &path).map_err(Refused::Open)?;
        Ok(Place { kind: Kind::Local(local), found })
    }
}

/// A destination that may not be written to yet: a file or a device that is open, or an export of an NBD server.
pub struct Place {
    kind: Kind,
    found: Found,
}

enum Kind {
    Local(Local),
    #[cfg(feature = "nbd")]
    Export(String),
}

impl Place {
    /// Takes the URI of an export. The server is not asked yet.
    #[cfg(feature = "nbd")]
    pub fn export(uri: &str, existing: Existing) -> Self {
        let found = Found { name: None, existing, is_new: false, length: 0, is_file: false };
        Self { kind: Kind::Export(uri.to_owned()), found }
    }

    /// Returns what the destination was before the copy.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Returns the destination for a copy of `source`, which is `None` for a stream. `options` are those for the server.
    ///
    /// # Errors
    ///
    /// Fails if the destination is a file of the source, is in use or unavailable, holds something that must stay, or makes
    /// no such zeros.
    pub fn into_destination(
        self,
        source: Option<&Image>,
        zeros: Zeros,
        options: &OpenOptions,
    ) -> Result<Box<dyn Destination>, Refused> {
        let Self { kind, found } = self;
        if let (Some((_, identity)), Some(source)) = (&found.name, source)
            && identity.is_in(source)
        {
            return Err(Refused::Source);
        }
        let destination: Box<dyn Destination> = match kind {
            Kind::Local(local) => {
                // Fails if it is in use, before anything is written.
                local.claim().map_err(Refused::Used)?;
                Box::new(local)
            }
            #[cfg(feature = "nbd")]
            Kind::Export(uri) => {
                let export = Export::open(&uri, &options.nbd).map_err(Refused::Image)?;
                if zeros == Zeros::Punch {
                    return Err(Refused::Deallocation);
                }
                Box::new(export)
            }
        };
        #[cfg(not(feature = "nbd"))]
        let _ = (zeros, options);
        if found.existing == Existing::Refuse {
            found.check_content(&*destination)?;
        }
        if let Some(source) = source {
            found.check_format(&*destination, source)?;
        }
        Ok(destination)
    }
}

#[cfg(test)]
mod tests;
