//! Opens an [`Image`] from a path, a descriptor, a URI or a storage.
//!
//! Follows the backing chain in a loop with a limit. Each format opens its own layer.

pub(crate) mod stated;
#[cfg(feature = "http")]
pub(crate) mod url;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::chain::{Candidate, Chain, OpenedLayer};
use crate::check::{Summary, Visitor};
#[cfg(feature = "compressed")]
use crate::compressed::{self, Decompressed};
#[cfg(feature = "compressed")]
use crate::compression::Compression;
use crate::container::open_disk;
#[cfg(feature = "compressed")]
use crate::container::{container_of, is_container};
use crate::error::{Error, ErrorKind, Result};
use crate::formats;
use crate::hint::Hint;
use crate::image::Image;
use crate::location::Location;
use crate::options::{Follow, OpenOptions};
use crate::probe::{self, Format, PROBE_SIZE};
use crate::recognise;
use crate::references::Folder;
use crate::storage::local::file::{LocalFile, check_type, find};
use crate::storage::{HostFile, Storage, remote};
use crate::sys::{self, Found, NodeType};

impl OpenOptions {
    /// Opens the image at `path`, a regular file or a block device, and every file it refers to.
    ///
    /// Never opens a FIFO, a character device or a file whose content the kernel generates on read, as
    /// in procfs, even if a file is replaced during the call.
    ///
    /// `path` may be the path of a [`Container`](crate::Container), a colon and the name of a disk. A file that has the
    /// whole name is opened instead, unless the path [stands for the disks](is_container). Such a path alone stands for
    /// the disk if there is a single one, unless a format was given.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be opened, is neither a regular file nor a block device, or is in use for writing, if the
    /// image is damaged or of a format that is not supported, or if it refers to a file that [`Follow`] does not allow.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Image> {
        let path = path.as_ref();
        if let Some(image) = open_disk(self, path)? {
            return Ok(image);
        }
        let mut chain = Chain::new(self);
        let found = find(path)?;
        let file = open_found(&mut chain, &found, path)?;
        #[cfg(feature = "compressed")]
        if let Some(compression) = compressed::of_file(self, path, &file) {
            return self.open_compressed(compression, Arc::new(file), path);
        }
        let file = chain.host_file(Box::new(file), path);
        finish(chain, file, Folder::Of(path.to_path_buf()), 0)
    }

    /// Checks the structure of the image at `path` without opening its content, which may be encrypted, damaged, or need files
    /// that are missing. No other file is opened. Returns `None` if its format has no checks.
    ///
    /// The path names a file, or the URL of an object on an HTTP or S3 server, not of a disk in a container, and the
    /// file is not decompressed.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened, read or recognised, is in use for writing, or changed, or if it has no valid header.
    /// Other damage is no error, and is passed to `visitor`.
    pub fn check_structure(
        &self,
        path: &Path,
        visitor: &mut dyn Visitor,
    ) -> Result<Option<Summary>> {
        #[cfg(feature = "http")]
        if let Some(url) = Location::new(path.as_os_str()).url() {
            return self.check_object(url, visitor);
        }
        let mut chain = Chain::new(self);
        let file = open_found(&mut chain, &find(path)?, path)?;
        self.check_file(&chain.host_file(Box::new(file), path), visitor)
    }

    /// Checks the structure of the image in any storage, as [`check_structure`](Self::check_structure) does.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read or recognised, or if it has no valid header.
    pub fn check_storage(
        &self,
        storage: Box<dyn Storage>,
        name: &str,
        visitor: &mut dyn Visitor,
    ) -> Result<Option<Summary>> {
        self.check_file(&Chain::new(self).host_file(storage, Path::new(name)), visitor)
    }

    fn check_file(&self, file: &HostFile, visitor: &mut dyn Visitor) -> Result<Option<Summary>> {
        let checked = formats::check(file, top_format(self, file, 0)?, visitor);
        file.check_unchanged()?;
        checked
    }

    /// Opens the image in a compressed storage.
    #[cfg(feature = "compressed")]
    fn open_compressed(
        &self,
        compression: Compression,
        storage: Arc<dyn Storage>,
        name: &Path,
    ) -> Result<Image> {
        let content = compressed::content(self, compression, storage, name)?;
        self.open_content(content, name)
    }

    /// Opens the file at `path` to read its content from start to end, if it is compressed and does not state the size of its
    /// content, so that [`open`](Self::open) would decode it twice. Otherwise returns `None`.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened or read, is damaged, or is in use for writing.
    #[cfg(feature = "compressed")]
    pub fn open_decompressed(&self, path: &Path) -> Result<Option<Decompressed<'static>>> {
        let is_none = self.compression.is_none() && Compression::of_name(path).is_none();
        if is_none || is_container(path) || container_of(path).is_some() {
            return Ok(None);
        }
        let mut chain = Chain::new(self);
        let file = open_found(&mut chain, &find(path)?, path)?;
        match compressed::of_file(self, path, &file) {
            Some(compression) => compressed::stream(self, compression, Arc::new(file), path),
            None => Ok(None),
        }
    }

    /// Opens the image in an open descriptor, for example a standard input that is a file.
    ///
    /// `name` is the name used in errors. The content begins at byte `start`. If `start` is not 0, the
    /// image must be raw. References are resolved in the folder of the descriptor's path, if the system
    /// knows a path that still leads to the same file. Does not move the offset of the descriptor.
    ///
    /// # Errors
    ///
    /// Fails as [`open`](Self::open) does, and if `start` is not 0 and the image is not raw.
    pub fn open_file(&self, file: File, name: &Path, start: u64) -> Result<Image> {
        let error = |e| Error::new(ErrorKind::Open, name, "cannot open").because(e);
        let stamp = sys::stamp(&file).map_err(error)?;
        check_type(stamp.node_type, name)?;
        let leads_here = |path: &PathBuf| {
            sys::stamp_of(path).is_ok_and(|found| {
                found.node_type == NodeType::Regular && found.identity == stamp.identity
            })
        };
        let folder = match sys::path_of(&file).ok().filter(leads_here) {
            Some(path) => Folder::Of(path),
            None => Folder::Unknown,
        };
        let mut chain = Chain::new(self);
        let file = match sys::reopen(&file) {
            Some(own) => chain.local_storage(own, name, false)?,
            None => chain.local_storage(file, name, true)?,
        };
        #[cfg(feature = "compressed")]
        if let Some(compression) = self.compression {
            if start != 0 {
                let reason = "a compressed image must begin at the start of its file";
                return Err(Error::new(ErrorKind::Format, name, reason).at(start));
            }
            return self.open_compressed(compression, Arc::new(file), name);
        }
        let file = chain.host_file(Box::new(file), name);
        finish(chain, file, folder, start)
    }

    /// Opens the image at a path or a URI.
    ///
    /// # Errors
    ///
    /// Fails as [`open`](Self::open) or [`open_uri`](Self::open_uri) does, or if a URI is not UTF-8.
    pub fn open_location(&self, location: Location<'_>) -> Result<Image> {
        match location {
            Location::Path(path) => self.open(path),
            Location::Uri(uri) => match uri.to_str() {
                Some(uri) => self.open_uri(uri),
                None => Err(Error::new(ErrorKind::Argument, uri, "URI is not UTF-8")),
            },
        }
    }

    /// Opens the export of an NBD server, or the object at a URL of an HTTP or S3 server.
    ///
    /// An export is raw unless [`OpenOptions::format`] is set, because a guest can write any header into it. It cannot refer to
    /// other files. An object is like a file, and [`open_url`](Self::open_url) says how. Here, its server must have ranges.
    ///
    /// # Errors
    ///
    /// Fails if the URI is invalid or of a transport that is not supported, if libnbd is missing, if the server cannot be
    /// reached or authenticated, is too slow or lacks the export, or as [`open_storage`](Self::open_storage) or
    /// [`open_url`](Self::open_url) does.
    pub fn open_uri(&self, uri: &str) -> Result<Image> {
        #[cfg(feature = "http")]
        if Location::new(uri.as_ref()).is_url() {
            return self.open_image_at(uri);
        }
        let export = remote::open(uri, self)?;
        let format = Some(self.format.unwrap_or(Format::Raw));
        Self { format, ..self.clone() }.open_storage(export, uri)
    }

    /// Opens an image in any storage. The image cannot refer to other files.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read, if the image is damaged or not supported, or if it needs another file.
    pub fn open_storage(&self, storage: Box<dyn Storage>, name: &str) -> Result<Image> {
        let name = Path::new(name);
        #[cfg(feature = "compressed")]
        if let Some(compression) = self.compression {
            return self.open_compressed(compression, storage.into(), name);
        }
        self.open_content(storage, name)
    }

    fn open_content(&self, storage: Box<dyn Storage>, name: &Path) -> Result<Image> {
        let options = Self { follow: Follow::None, ..self.clone() };
        let chain = Chain::new(&options);
        let file = chain.host_file(storage, name);
        finish(chain, file, Folder::Unknown, 0)
    }
}

/// Detects the format of the image at `path`, as [`OpenOptions::open`] does, and reads nothing else of it.
///
/// # Errors
///
/// Fails if the file cannot be opened or read, or is neither a regular file nor a block device.
pub fn detect(path: impl AsRef<Path>) -> Result<Format> {
    let path = path.as_ref();
    let error = |e| Error::new(ErrorKind::Open, path, "cannot open").because(e);
    let file = find(path)?.open().map_err(error)?;
    detect_file(&file, path)
}

/// Detects the format of the image in an open descriptor. `name` is the name used in errors.
///
/// # Errors
///
/// Fails if the file cannot be read, or is neither a regular file nor a block device.
pub fn detect_file(file: &File, name: &Path) -> Result<Format> {
    let error = |e| Error::new(ErrorKind::Io, name, "cannot be read").because(e);
    let stamp = sys::stamp(file).map_err(error)?;
    check_type(stamp.node_type, name)?;
    let is_device = stamp.node_type == NodeType::BlockDevice;
    let size = if is_device { sys::device_size(file).map_err(error)? } else { stamp.size };
    probe::probe_open(file, size).map_err(error)
}

fn open_found(chain: &mut Chain<'_>, found: &Found<'_>, path: &Path) -> Result<LocalFile> {
    let error = |e| Error::new(ErrorKind::Open, path, "cannot open").because(e);
    chain.local_storage(found.open().map_err(error)?, path, false)
}

/// Returns the format of the image that begins at `start`, from the options or from its content.
fn top_format(options: &OpenOptions, file: &HostFile, start: u64) -> Result<Format> {
    let format = match options.format {
        Some(format) => given(file, format)?,
        None => detected(file, start)?,
    };
    if start != 0 && format != Format::Raw {
        let reason = format!("a {format} image must begin at the start of its file");
        return Err(file.error(ErrorKind::Format, reason).at(start));
    }
    if options.snapshot.is_some() && !formats::has_snapshots(options, format) {
        let reason = format!("a {format} image has no snapshots that can be read");
        return Err(file.error(ErrorKind::Snapshot, reason));
    }
    Ok(format)
}

/// Returns the given format. Fails if the file begins like an image of another one, unless its header may be elsewhere.
fn given(file: &HostFile, format: Format) -> Result<Format> {
    if matches!(format, Format::Raw | Format::Vpc | Format::Dmg | Format::Luks) {
        return Ok(format);
    }
    match probe::probe(&file.read_head(PROBE_SIZE)?) {
        Some(found) if found != format => {
            let reason = format!("is a {found} image, and was to be read as {format}");
            Err(file.error(ErrorKind::Format, reason).with_hint(Hint::Format))
        }
        _ => Ok(format),
    }
}

/// Detects the format of the image that begins at `start`. Fails if it would be raw and is something else.
fn detected(file: &HostFile, start: u64) -> Result<Format> {
    let length = file.size().saturating_sub(start).min(recognise::HEAD_SIZE as u64);
    let mut head = vec![0; length as usize];
    file.read_exact_at(&mut head, start)?;
    let format = match start {
        0 => probe::probe_file(file, &head)?,
        _ => probe::probe(&head[..head.len().min(PROBE_SIZE)]).unwrap_or(Format::Raw),
    };
    if format == Format::Raw {
        recognise::check_file(file, &head)?;
    }
    Ok(format)
}

/// Opens the image in a file, layer by layer.
fn finish(mut chain: Chain<'_>, file: Arc<HostFile>, folder: Folder, start: u64) -> Result<Image> {
    let format = top_format(chain.options, &file, start)?;
    let mut next = Some(Candidate { file, folder, format, start });
    while let Some(image) = next.take() {
        chain.check_length(&image.file, 0)?;
        let index = chain.members.len();
        chain.add_image(&image);
        let OpenedLayer { layer, backing } = formats::open(&mut chain, &image)?;
        chain.members[index].virtual_size = Some(layer.size());
        chain.layers.push(layer);
        if let Some(backing) = backing {
            next = Some(chain.follow_backing(&image, backing)?);
        }
    }
    Ok(Image::new(chain, format))
}

#[cfg(test)]
mod tests;
