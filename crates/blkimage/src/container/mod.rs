//! Containers: files and folders that hold disks, as virtual appliances (`.ova`) and OCI images do.
//!
//! The name of a disk is the name of its container, a colon and the name that the container gives it. It refers to no
//! other file, and nothing is unpacked.
//!
//! A kind of containers is a module with a [`Container`], and a row of [`KINDS`].

#[cfg(feature = "compressed")]
mod checked;
#[cfg(feature = "compressed")]
mod choice;
#[cfg(feature = "compressed")]
mod forward;
// Only OCI images use all of it.
#[cfg_attr(not(feature = "oci"), allow(dead_code))]
mod entries;
mod kind;
pub(crate) mod name;
#[cfg(feature = "oci")]
mod oci;
mod ova;
#[cfg(feature = "compressed")]
mod runs;
#[cfg(feature = "compressed")]
mod tarball;
#[cfg(feature = "compressed")]
mod vma;
#[cfg(feature = "compressed")]
mod xva;
#[cfg(feature = "compressed")]
mod zip;

use std::ffi::{OsStr, OsString};
use std::iter::{empty, once};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::slice;
#[cfg(feature = "http")]
use std::sync::Arc;

pub use self::kind::{Container, Manifest};
use self::kind::{Kind, Opened, Paths};
pub use self::name::member_name;
use crate::error::{Error, ErrorKind, Result};
use crate::hint::Hint;
use crate::image::Image;
use crate::location::{Location, telling};
use crate::options::OpenOptions;
#[cfg(feature = "http")]
use crate::storage::Storage;
#[cfg(feature = "http")]
use crate::storage::web::Web;

/// All kinds of containers. Where no name decides, the first one counts that opens a file.
static KINDS: &[Kind] = &[
    #[cfg(feature = "oci")]
    oci::KIND,
    ova::KIND,
    #[cfg(feature = "compressed")]
    zip::KIND,
    #[cfg(feature = "compressed")]
    vma::KIND,
    #[cfg(feature = "compressed")]
    xva::KIND,
    #[cfg(feature = "compressed")]
    tarball::KIND,
];

impl OpenOptions {
    /// Opens the container at `path`, if the path [stands for the disks in it](is_container). Returns `None` if it does not, or
    /// if what has the name of a container is none. The path may be the URL of a file with the name
    /// of an archive.
    ///
    /// # Errors
    ///
    /// Fails if the file or folder cannot be opened or read, or if an archive is damaged or ambiguous, has several
    /// descriptors or none, or more members than the limit.
    pub fn open_container(&self, path: &Path) -> Result<Option<Box<dyn Container>>> {
        #[cfg(feature = "http")]
        if let Some(url) = Location::new(path.as_os_str()).url() {
            return open_at(self, url).map(|found| found.map(|(_, container)| container));
        }
        kind_at(path).map_or(Ok(None), |kind| kind.open(self, path))
    }
}

/// Opens the disk of this name in a container, or the only disk of the container for whose disks `path` stands. Returns
/// `None` if there is no container.
pub(crate) fn open_disk(options: &OpenOptions, path: &Path) -> Result<Option<Image>> {
    if let Some((container, member)) = split(path)
        && let Some(container) = open_named(options, container)?
    {
        return container.open(options, member).map(Some);
    }
    if options.format.is_none()
        && let Some(kind) = kind_at(path)
        && let Some(container) = kind.open(options, path)?
    {
        return open_only_disk(kind, &*container, options, path);
    }
    Ok(None)
}

/// Opens the disk of this name in a container at a URL, or its only disk. Returns `None` if there is no container.
#[cfg(feature = "http")]
pub(crate) fn open_disk_at(options: &OpenOptions, name: &str) -> Result<Option<Image>> {
    if let Some((url, member)) = Location::new(name.as_ref()).member_of_url() {
        return match open_at(options, &url)? {
            Some((_, container)) => container.open(options, &member).map(Some),
            None => {
                let reason = "is a member of what is no archive with disks";
                Err(Error::new(ErrorKind::Format, name, reason))
            }
        };
    }
    if options.format.is_some() {
        return Ok(None);
    }
    match open_at(options, name)? {
        Some((kind, container)) => open_only_disk(kind, &*container, options, Path::new(name)),
        None => Ok(None),
    }
}

/// Opens the container at a URL, if it has a container's name. An archive that is no container has its name, too.
#[cfg(feature = "http")]
fn open_at(
    options: &OpenOptions,
    url: &str,
) -> Result<Option<(&'static Kind, Box<dyn Container>)>> {
    let name = telling(Path::new(url)).as_os_str().as_bytes().to_vec();
    let kinds: Vec<_> = KINDS.iter().filter(|kind| kind.has_archive_name(&name)).collect();
    if kinds.is_empty() {
        return Ok(None);
    }
    let object = Arc::new(Web::open(url, options)?);
    if !object.has_ranges() {
        return Err(object.without_ranges("an archive with disks"));
    }
    for kind in kinds {
        let storage: Arc<dyn Storage> = object.clone();
        if let Some(container) = (kind.open_storage)(options, storage, Path::new(url))? {
            return Ok(Some((kind, container)));
        }
    }
    Ok(None)
}

/// Opens the container that the name of a disk begins with, whatever its own name is.
fn open_named(options: &OpenOptions, path: &Path) -> Opened {
    let kinds = kind_at(path).map_or(KINDS, slice::from_ref);
    kinds.iter().find_map(|kind| kind.open(options, path).transpose()).transpose()
}

/// Opens the disk of a container where one image is wanted. Fails if there are several. Returns `None` for a file without
/// disks that may be an image.
fn open_only_disk(
    kind: &Kind,
    container: &dyn Container,
    options: &OpenOptions,
    path: &Path,
) -> Result<Option<Image>> {
    if container.is_stream() {
        return container.open_first(options).map(Some);
    }
    let disks = container.disks()?;
    let error =
        |reason: String| Error::new(ErrorKind::Format, path, format!("is {} {reason}", kind.noun));
    // The bytes of a folder cannot be read.
    let is_file = !path.is_dir();
    match &*disks {
        [disk] => container.open(options, disk).map(Some),
        [] if is_file && kind.extensions.is_empty() => Ok(None),
        [] => {
            let error = error("without a disk".to_owned());
            Err(if is_file { error.with_hint(Hint::Raw) } else { error })
        }
        disks => {
            let names = disks.iter().map(|disk| member_name(path, disk).into_os_string());
            let (count, names) = (disks.len(), name::first(names.map(OsString::into_vec)));
            Err(error(format!("with {count} disks: name one, as in {names}")))
        }
    }
}

/// Returns the path of the container that holds the disk or other member of this name. `None` if the name is a file's,
/// or nothing's.
///
/// The name of a disk is the name of its container, a colon and the name that the container gives it. The container is
/// a regular file or a folder, and a file that has the whole name wins over it unless the container [stands for its
/// disks](is_container).
///
/// `None` for URLs, which name no file of this host.
pub fn container_of(name: &Path) -> Option<&Path> {
    if Location::new(name.as_os_str()).is_uri() {
        return None;
    }
    split(name).map(|(container, _)| container)
}

/// Splits `name` into the path of a regular file or of a container in a folder, and the name of a member, at the first colon
/// before which there is one. Returns `None` if none has a part of the name.
///
/// Returns `None` as well if a file has the whole name, unless the part [is a container](is_container): the
/// names of members are those that the container gives them, and must not name other files.
fn split(name: &Path) -> Option<(&Path, &[u8])> {
    let bytes = name.as_os_str().as_bytes();
    let colons = bytes.iter().enumerate().filter(|(_, byte)| **byte == b':');
    let mut splits = colons
        .map(|(at, _)| (Path::new(OsStr::from_bytes(&bytes[..at])), &bytes[at + 1..]))
        .filter(|(path, member)| !member.is_empty() && (path.is_file() || is_folder(path)));
    let first = splits.next()?;
    let mut all = once(first).chain(splits);
    if name.symlink_metadata().is_ok() {
        return all.find(|(path, _)| is_container(path));
    }
    all.find(|(path, _)| kind_named(path).is_some()).or(Some(first))
}

/// Returns whether `path` stands for the disks in a container. It does if its name ends in `.ova`, if it is an OCI image and
/// its name ends in `.tar`, or if it is a folder with an OCI image layout.
///
/// A guest could write an archive into its raw disk, so the content alone does not make a container. What a URL that ends in `.tar`
/// leads to is not known here.
pub fn is_container(path: &Path) -> bool {
    kind_at(path).is_some()
}

/// Returns the files of this host with the bytes of an image of this name. An image on a server has none.
pub(crate) fn files_of(name: &Path) -> Paths {
    let path = container_of(name).unwrap_or(name);
    if Location::new(path.as_os_str()).is_uri() {
        return Box::new(empty());
    }
    let kind = path.is_dir().then(|| kind_at(path)).flatten();
    match kind.and_then(|kind| kind.files) {
        Some(files) => files(path),
        None => Box::new(once(path.to_owned())),
    }
}

/// Returns whether there is a container in a folder at `path`.
fn is_folder(path: &Path) -> bool {
    path.is_dir() && is_container(path)
}

/// Returns the kind that the name of a path decides.
fn kind_named(path: &Path) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.has_name(path))
}

/// Returns the kind of the container for whose disks a path stands.
fn kind_at(path: &Path) -> Option<&'static Kind> {
    if Location::new(path.as_os_str()).is_uri() {
        return kind_named(&telling(path));
    }
    kind_named(path).or_else(|| KINDS.iter().find(|kind| (kind.is_at)(path)))
}

#[cfg(all(test, feature = "compressed"))]
mod tests {
    use super::*;
    use crate::location::has_archive_name;

    #[test]
    fn names_on_servers_are_known_as_archives() {
        for end in KINDS.iter().flat_map(|kind| kind.archives) {
            assert!(has_archive_name(&[b"x", *end].concat()), "{}", end.escape_ascii());
        }
    }
}
