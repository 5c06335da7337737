//! Where a copy may go: the only code that decides it, for commands and libraries.
//!
//! A [`FileName`] is refused before anything is opened or created, a [`Place`] before the source is, and the rest by
//! [`Place::into_destination`], when the source is known. Nothing is written meanwhile. [`Found`] is what a resumed copy is
//! compared with, and tells at the end whether the name still leads to the copy.
//!
//! What the copy must not be is compared as [`Stored`]: not by names, but by the bytes that they lead to, through links, loop
//! devices, partitions, volumes, overlays and servers, as far as the [`System`] tells.

mod found;
mod overlay;
mod refused;
mod resumed;
mod server;
mod stored;
mod system;

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use blkimage::{ErrorKind, FileKind, Identity, Image, Location, OpenOptions, Source};
use rustix::fs::OFlags;

pub use self::found::Found;
pub use self::refused::{Refused, Unlike};
pub use self::resumed::Resumed;
use self::server::Access;
use self::stored::Stored;
use self::system::System;
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
    /// It is an interrupted copy, which continues. [`Found::check_resumed`] judges that.
    Resume,
}

/// What a destination must not be, apart from a file of the source.
#[derive(Clone, Copy, Debug, Default)]
pub struct Others<'a> {
    /// The source. What is stored in it or stores it is no destination either.
    pub source: Option<Reading<'a>>,
    /// Other files that are read or written, with the words for the error: "the file of the map".
    pub files: &'a [(Identity, &'a str)],
}

/// What is read.
#[derive(Clone, Copy, Debug)]
pub enum Reading<'a> {
    /// This name, which may name a disk in a container.
    Name(Location<'a>),
    /// This open file.
    File(&'a File),
}

impl Reading<'_> {
    fn stored(&self, system: &System) -> Stored {
        match self {
            Self::Name(name) => Stored::of_name(system, *name, Access::Read),
            Self::File(file) => match file.metadata() {
                Ok(metadata) => Stored::of_file(system, file, &metadata),
                Err(_) => Stored::default(),
            },
        }
    }
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
    /// Fails if it is something else, or the name promises something else than a raw disk, unless it is overwritten.
    pub fn new(path: &Path, existing: Existing) -> Result<Self, Refused> {
        let found = fs::metadata(path).map(|metadata| metadata.file_type());
        let is_device = found.as_ref().is_ok_and(FileTypeExt::is_block_device);
        // Volumes are named after anything.
        let promise = FileKind::of_name(path).filter(|_| !is_device);
        if let Some(kind) = promise.filter(|_| existing != Existing::Overwrite) {
            return Err(Refused::Name(kind));
        }
        if found
            .as_ref()
            .map_or_else(|error| error.kind() == io::ErrorKind::NotFound, fs::FileType::is_file)
            && blksys::is_among_devices(path)
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
        let file = file.map_err(Refused::Open)?;
        let metadata = file.metadata().map_err(Refused::Open)?;
        if system::is_read_only(metadata.rdev()) {
            let error = io::Error::new(io::ErrorKind::PermissionDenied, READ_ONLY);
            return Err(Refused::Open(error));
        }
        self.with_file(file, false, others)
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
        let system = System::now();
        let stored = Stored::of_file(&system, &file, &metadata);
        others.check_apart(&stored)?;
        if let Some(source) = others.source {
            check_apart(&stored, &source.stored(&system))?;
        }
        if let Some(reason) = mounted_from(&system, &stored, identity) {
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
            // The current folder may change.
            name: Some((std::path::absolute(&path).map_err(Refused::Open)?, identity)),
            existing,
            is_new,
            length: metadata.len(),
            is_file: !is_device,
        };
        let local = Local::new(file, &path).map_err(Refused::Open)?;
        Ok(Place { kind: Kind::Local(local), found, system, stored })
    }
}

impl Others<'_> {
    /// Refuses a destination that is one of the other files, or stored in one.
    fn check_apart(&self, destination: &Stored) -> Result<(), Refused> {
        match self.files.iter().find(|(identity, _)| destination.has(*identity)) {
            Some((_, name)) => Err(Refused::Other((*name).to_owned())),
            None => Ok(()),
        }
    }
}

/// Refuses a destination whose bytes are the source's.
fn check_apart(destination: &Stored, source: &Stored) -> Result<(), Refused> {
    match destination.overlaps(source) {
        true if destination.is_same(source) => Err(Refused::Source),
        true => Err(Refused::Overlaps),
        false => Ok(()),
    }
}

/// Returns the reason if the destination stores a file system that is mounted from another device. Mounts for reading count:
/// nothing expects that what is beneath them changes.
fn mounted_from(system: &System, destination: &Stored, own: Identity) -> Option<String> {
    let others = system.mounted().filter(|(device, _)| *device != own);
    let mut others =
        others.filter(|(device, _)| Stored::of_device(system, *device).overlaps(destination));
    let is = match own {
        Identity::File(..) => "is the file of",
        Identity::Device(_) => "is stored in the file of",
    };
    others.next().map(|(_, name)| format!("{is} {name}, which is mounted"))
}

/// A destination that may not be written to yet: a file or a device that is open, or an export of an NBD server.
pub struct Place {
    kind: Kind,
    found: Found,
    system: System,
    stored: Stored,
}

enum Kind {
    Local(Local),
    #[cfg(feature = "nbd")]
    Export(String),
}

impl Place {
    /// Takes the URI of an export. The server is not asked yet.
    ///
    /// # Errors
    ///
    /// Fails if it is the URL of an object, if it is the export that is read, or if its server has a file of the source open for writing, as far as the system
    /// tells.
    #[cfg(feature = "nbd")]
    pub fn export(uri: &str, existing: Existing, others: &Others<'_>) -> Result<Self, Refused> {
        let location = Location::new(OsStr::new(uri));
        if location.is_url() {
            return Err(Refused::Url);
        }
        let system = System::now();
        let stored = Stored::of_name(&system, location, Access::Write);
        others.check_apart(&stored)?;
        if let Some(source) = others.source {
            check_apart(&stored, &source.stored(&system))?;
        }
        let found = Found { name: None, existing, is_new: false, length: 0, is_file: false };
        Ok(Self { kind: Kind::Export(uri.to_owned()), found, system, stored })
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
        let Self { kind, found, system, stored } = self;
        if let Some(source) = source {
            if let Some((_, identity)) = &found.name
                && identity.is_in(source)
            {
                return Err(Refused::Source);
            }
            if stored.has_file_of(source) {
                return Err(Refused::Overlaps);
            }
            check_apart(&stored, &Stored::of_image(&system, source))?;
        }
        if !found.is_file && source.is_some_and(|source| source.size() == 0) {
            return Err(Refused::Empty);
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

const READ_ONLY: &str = "is a read-only device: 'blockdev --setrw DEVICE' allows writes";

#[cfg(test)]
mod tests;
