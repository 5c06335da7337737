//! Files with several disks: virtual appliances (`.ova`), and OCI images.
//!
//! The name of a disk is that of the appliance, a colon and the name that the appliance gives it. It refers to no other
//! file, and nothing is unpacked.

mod entries;
mod name;
#[cfg(feature = "oci")]
mod oci;
mod ova;
pub(crate) mod tar;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::name::has_extension;
pub use self::name::member_name;
#[cfg(feature = "oci")]
use self::oci::Images;
use self::ova::Ova;
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::hint::Hint;
use crate::image::Image;
use crate::options::OpenOptions;
use crate::storage::Storage;

/// An open appliance: a tar archive with a descriptor (`.ova`), or an OCI image in a folder or a tar archive.
pub struct Appliance {
    name: PathBuf,
    kind: Kind,
}

enum Kind {
    Ova(Box<Ova>),
    #[cfg(feature = "oci")]
    Oci(Box<Images>),
}

impl Appliance {
    /// Opens the archive in a storage. Returns `None` if it is none, or is neither an OCI image nor has a descriptor.
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        name: &Path,
        options: &OpenOptions,
    ) -> Result<Option<Self>> {
        #[cfg(feature = "oci")]
        if !is_ova(name) && oci::is_archive(&storage) {
            let images = Images::in_archive(storage, name, options)?;
            return Ok(Some(Self { name: name.into(), kind: Kind::Oci(Box::new(images)) }));
        }
        #[cfg(not(feature = "oci"))]
        let _ = options;
        let ova = Ova::new(storage, name)?;
        Ok(ova.map(|ova| Self { name: name.into(), kind: Kind::Ova(Box::new(ova)) }))
    }

    /// Opens the OCI image layout in a folder.
    #[cfg(feature = "oci")]
    pub(crate) fn in_folder(path: &Path, options: &OpenOptions) -> Result<Self> {
        let images = Images::in_folder(path, options)?;
        Ok(Self { name: path.into(), kind: Kind::Oci(Box::new(images)) })
    }

    /// Returns the names of the disks, in the order of the appliance.
    ///
    /// If the descriptor of an `.ova` names none, these are the members with a known image format. Those of an OCI image are
    /// the layers that are disks, and the files in the folder `disk` of a container image.
    ///
    /// # Errors
    ///
    /// Fails if the descriptor, an index or a manifest cannot be read, is invalid or too long, names a disk that is
    /// missing, is stored in a way that is not read or has another size or digest than stated, or if there are too many
    /// disks.
    pub fn disks(&self) -> Result<Vec<Vec<u8>>> {
        match &self.kind {
            Kind::Ova(ova) => ova.disks(),
            #[cfg(feature = "oci")]
            Kind::Oci(images) => images.disks(),
        }
    }

    /// Returns the name and the content of the manifest, if there is one. That of an OCI image is made of the digests of
    /// all blobs to which the index leads.
    ///
    /// # Errors
    ///
    /// Fails if there are several, or if it cannot be read or is too long.
    pub fn manifest(&self) -> Result<Option<(&[u8], Vec<u8>)>> {
        match &self.kind {
            Kind::Ova(ova) => ova.manifest(),
            #[cfg(feature = "oci")]
            Kind::Oci(images) => images.manifest().map(Some),
        }
    }

    /// Returns a disk that the descriptor names and `listed` lacks.
    ///
    /// # Errors
    ///
    /// Fails if the descriptor cannot be read, or names a disk that is missing or may be one of several members.
    pub fn disk_beyond(&self, listed: &HashSet<Vec<u8>>) -> Result<Option<Vec<u8>>> {
        match &self.kind {
            Kind::Ova(ova) => ova.disk_beyond(listed),
            // All blobs are listed.
            #[cfg(feature = "oci")]
            Kind::Oci(_) => Ok(None),
        }
    }

    /// Opens a disk or another member as an image.
    ///
    /// # Errors
    ///
    /// Fails if the appliance has no such member or several, if the member is compressed in a way that is not read, or as
    /// [`OpenOptions::open_storage`] does.
    pub fn open(&self, options: &OpenOptions, member: &[u8]) -> Result<Image> {
        match &self.kind {
            Kind::Ova(ova) => ova.open(options, member),
            #[cfg(feature = "oci")]
            Kind::Oci(images) => images.open(options, member),
        }
    }

    /// Opens the disk, where one image is wanted. Fails if there are several. Returns `None` for a container image without
    /// a disk in an archive, which is a raw image like any other `.tar`.
    pub(crate) fn open_only_disk(&self, options: &OpenOptions) -> Result<Option<Image>> {
        let disks = self.disks()?;
        if let [disk] = &*disks {
            return self.open(options, disk).map(Some);
        }
        let kind = match &self.kind {
            Kind::Ova(_) => "appliance",
            #[cfg(feature = "oci")]
            Kind::Oci(_) if disks.is_empty() && !self.name.is_dir() => return Ok(None),
            #[cfg(feature = "oci")]
            Kind::Oci(_) => "OCI image",
        };
        let shown = |disk: &Vec<u8>| excerpt(member_name(&self.name, disk).as_os_str().as_bytes());
        let names: Vec<_> = disks.iter().take(MAX_NAMES).map(shown).collect();
        let more = if disks.len() > MAX_NAMES { ", ..." } else { "" };
        let error = |reason: String| Error::new(ErrorKind::Format, &*self.name, reason);
        Err(match disks.len() {
            // The bytes of a folder cannot be read.
            0 if self.name.is_dir() => error(format!("is an {kind} without a disk")),
            0 => error(format!("is an {kind} without a disk")).with_hint(Hint::Raw),
            count => error(format!(
                "is an {kind} with {count} disks: name one, as in {}{more}",
                names.join(", ")
            )),
        })
    }
}

/// Splits `name` into the path of a regular file or of an OCI image layout, and the name of a member, at the first colon
/// before which there is such a file. Returns `None` if none has a part of the name.
///
/// Returns `None` as well if a file has the whole name, unless the part [is an appliance](is_appliance): the
/// names of members are those that the appliance gives them, and must not name other files.
pub fn split_member(name: &Path) -> Option<(&Path, &[u8])> {
    let bytes = name.as_os_str().as_bytes();
    let colons = bytes.iter().enumerate().filter(|(_, byte)| **byte == b':');
    let mut splits = colons
        .map(|(at, _)| (Path::new(OsStr::from_bytes(&bytes[..at])), &bytes[at + 1..]))
        .filter(|(path, member)| !member.is_empty() && (path.is_file() || is_layout(path)));
    let first = splits.next()?;
    let mut all = std::iter::once(first).chain(splits);
    if name.symlink_metadata().is_ok() {
        return all.find(|(path, _)| is_appliance(path));
    }
    all.find(|(path, _)| is_ova(path)).or(Some(first))
}

/// Returns whether the file at `path` stands for the disks in it if its content is that of an appliance. It does if its name
/// ends in `.ova`, if it is an OCI image and its name ends in `.tar`, or if it is a folder with an OCI image layout.
///
/// A guest could write an archive into its raw disk, so the content alone does not make an appliance.
pub fn is_appliance(path: &Path) -> bool {
    #[cfg(feature = "oci")]
    if has_extension(path.as_os_str().as_bytes(), TAR) && oci::is_archive_at(path) {
        return true;
    }
    is_ova(path) || is_layout(path)
}

/// Returns whether the name ends in `.ova`.
pub fn is_ova(path: &Path) -> bool {
    has_extension(path.as_os_str().as_bytes(), OVA)
}

/// Returns whether `path` leads to a folder with an OCI image layout.
pub fn is_layout(path: &Path) -> bool {
    cfg!(feature = "oci") && path.join("oci-layout").is_file()
}

/// Maximum number of disks of an appliance or container image that an error names.
/// Limit in disks.
const MAX_NAMES: usize = 5;

const OVA: &[u8] = b".ova";
#[cfg(feature = "oci")]
const TAR: &[u8] = b".tar";
