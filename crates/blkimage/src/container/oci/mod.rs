//! OCI images in a folder (an image layout) or a tar archive (an OCI archive, or one of `docker save`).
//!
//! A disk is a layer of its own, as in exports of KubeVirt and in images of podman machine, or a file in the folder `disk` of
//! a container image (a containerDisk). Documents are checked before they are parsed, and the blobs that a disk depends on
//! while it is read. Nothing is fetched, and no name in an image refers to a file of this host.

mod change;
mod content;
mod detect;
mod digest;
mod disk;
mod docker;
mod files;
mod keys;
mod layers;
mod links;
mod manifest;
mod names;
mod role;
mod scan;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use self::content::Scan;
use self::digest::Digest;
use self::disk::{Disk, Place};
use self::files::{Files, is_archive, is_archive_at};
use self::layers::{Folder, Member};
use self::manifest::{Blob, Found, Layer, Subject};
use self::names::Named;
use self::role::Role;
use self::scan::Layers;
use super::checked::{Checked, Stated};
use super::kind::{Container, Kind, Manifest, Opened, Paths};
use super::name::{first, has_extension, member_name};
use crate::Format;
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::hint::Hint;
use crate::image::Image;
use crate::options::OpenOptions;
use crate::probe::{PROBE_SIZE, probe};
use crate::storage::part::Part;
use crate::storage::{self, Storage};
use crate::tar;

pub(super) const KIND: Kind = Kind {
    noun: "an OCI image",
    extensions: &[],
    is_at,
    begins: |_, head| tar::is_tar(head),
    open_folder: Some(open_folder),
    archives: &[TAR],
    open_storage,
    files: Some(blobs),
};

/// The images in a folder or an archive.
struct Images {
    files: Files,
    found: OnceLock<Found>,
    disks: OnceLock<Vec<Disk>>,
    /// Limits of what is decoded.
    limits: OpenOptions,
    /// Sizes of the tar archives in compressed layers that were read, by their files.
    known_sizes: Mutex<HashMap<Vec<u8>, u64>>,
}

/// The content of a disk.
struct Content {
    storage: Arc<dyn Storage>,
    /// The blobs on which it depends.
    blobs: Vec<Stated>,
    /// The format that is stated.
    format: Option<Format>,
    /// Whether it is read without its end and may be an image that begins there.
    ends_like_image: bool,
}

/// Returns whether a path names a layout, or an archive by its name and its content.
fn is_at(path: &Path) -> bool {
    let is_tar = || has_extension(path.as_os_str().as_bytes(), TAR);
    is_layout(path) || is_tar() && is_archive_at(path)
}

fn open_folder(options: &OpenOptions, path: &Path) -> Opened {
    if !is_layout(path) {
        return Ok(None);
    }
    let files = Files::in_folder(path, options)?;
    Ok(Some(Box::new(Images::new(files, options))))
}

fn open_storage(options: &OpenOptions, storage: Arc<dyn Storage>, path: &Path) -> Opened {
    if !is_archive(&storage) {
        return Ok(None);
    }
    let files = Files::in_archive(storage, path)?;
    Ok(Some(Box::new(Images::new(files, options))))
}

/// Returns the blobs of the layout in a folder.
fn blobs(layout: &Path) -> Paths {
    let files = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let algorithms = files(&layout.join("blobs"));
    Box::new(algorithms.flat_map(move |folder| files(&folder.path())).map(|blob| blob.path()))
}

/// Returns whether `path` leads to a folder with an OCI image layout.
fn is_layout(path: &Path) -> bool {
    path.join(LAYOUT).is_file()
}

impl Container for Images {
    fn disks(&self) -> Result<Vec<Vec<u8>>> {
        Ok(self.listed()?.iter().map(|disk| disk.name.clone()).collect())
    }

    fn manifest(&self) -> Result<Manifest> {
        let mut text = String::new();
        for Blob { file, digest, is_of } in &self.found()?.blobs {
            let name = std::str::from_utf8(file).ok().filter(|name| is_plain(name));
            let name = name.ok_or_else(|| {
                let reason = format!("has the layer \"{}\", whose name is odd", excerpt(file));
                self.files.error(ErrorKind::Unsupported, reason)
            })?;
            if *is_of == Subject::Content
                && let Some(found) =
                    detect::compression(&*self.files.open(file)?, self.files.name())?
            {
                let reason = format!(
                    "has the layer \"{name}\", which is compressed ({found}), and a digest of its content alone"
                );
                return Err(self.files.error(ErrorKind::Unsupported, reason));
            }
            text += &digest.line(name);
        }
        // All blobs are listed, also of all disks.
        Ok(Manifest { text: text.into_bytes(), disks: Vec::new(), read: Vec::new() })
    }

    /// A member is a disk, or a file of the layout as it is.
    fn open(&self, options: &OpenOptions, member: &[u8]) -> Result<Image> {
        let name = member_name(self.files.name(), member);
        let name = name.to_string_lossy();
        let is_file = names::is_of_file(member);
        let disk = match is_file {
            true => None,
            false => self.listed()?.iter().find(|disk| disk.name == member),
        };
        let Some(disk) = disk else {
            if !is_file && !self.found()?.blobs.iter().any(|blob| blob.file == member) {
                let known = first(self.listed()?.iter().map(|disk| &disk.name));
                let has =
                    if known.is_empty() { String::new() } else { format!(": it has {known}") };
                let reason = format!("has no disk with the name \"{}\"{has}", excerpt(member));
                return Err(self.files.error(ErrorKind::Format, reason));
            }
            let storage = self.files.open(member)?;
            let digest = Digest::of_path(member);
            let storage: Box<dyn Storage> = match digest {
                Some(digest) => {
                    let blobs = vec![Stated { storage: storage.clone(), sum: Box::new(digest) }];
                    Box::new(Checked::new(storage, blobs))
                }
                None => Box::new(storage),
            };
            return options.open_storage(storage, &name);
        };
        let Content { storage, blobs, format, ends_like_image } = self.content(options, disk)?;
        // The compression of the blob is undone. The compression of a file in a layer may be given.
        let compression = match disk.place {
            Place::Blob { .. } => None,
            Place::Layer { .. } => options.compression,
        };
        let format = options.format.or(format);
        if ends_like_image && format.is_none() && compression.is_none() && storage.reads_forward() {
            let reason = format!(
                "its disk \"{}\" ends like a vpc or dmg image, whose end must be read first: extract it, or say what it is",
                excerpt(member)
            );
            return Err(self.files.error(ErrorKind::Unsupported, reason).with_hint(Hint::Format));
        }
        let options = OpenOptions { format, compression, ..options.clone() };
        options.open_storage(Box::new(Checked::new(storage, blobs)), &name)
    }
}

impl Images {
    fn new(files: Files, options: &OpenOptions) -> Self {
        let OpenOptions { max_zeros, max_memory, .. } = *options;
        let limits = OpenOptions::new().max_zeros(max_zeros).max_memory(max_memory);
        let (found, disks, known_sizes) = Default::default();
        Self { files, found, disks, limits, known_sizes }
    }

    /// Returns the content of a disk.
    fn content(&self, options: &OpenOptions, disk: &Disk) -> Result<Content> {
        match &disk.place {
            Place::Blob { blob, format, compression, size } => {
                let stored = self.files.open(&blob.file)?;
                let compression = options.compression.or(*compression);
                if let (None, Some(stated)) = (compression, size)
                    && stored.size() != *stated
                {
                    let size = stored.size();
                    let digest = &blob.digest;
                    let reason = format!(
                        "blob {digest} is a disk of {size} bytes, and its layer says {stated}"
                    );
                    return Err(self.files.corrupt(reason));
                }
                let options = OpenOptions { format: options.format.or(*format), ..options.clone() };
                let storage =
                    content::of_disk(&options, &self.files, stored.clone(), compression, *size)?;
                let blobs = vec![Stated { storage: stored, sum: Box::new(blob.digest.clone()) }];
                Ok(Content { storage, blobs, format: *format, ends_like_image: false })
            }
            Place::Layer { layers, member } => {
                let mut content = None;
                let mut blobs = Vec::with_capacity(layers.len());
                for (index, blob) in layers.iter().enumerate() {
                    let stored = self.files.open(&blob.file)?;
                    let tar = || {
                        let known = self.known_sizes().get(&blob.file).copied();
                        content::of_layer(&self.limits, &self.files, stored.clone(), known)
                    };
                    if index == member.layer {
                        let Member { offset, size, .. } = *member;
                        let storage = tar()?;
                        if offset.checked_add(size).is_none_or(|end| end > storage.size()) {
                            return Err(self.files.corrupt("has a layer that ends within a disk"));
                        }
                        content = Some(Part { storage, offset, size });
                    }
                    let digest = blob.digest.clone();
                    // Two files of one digest are both compared with it.
                    let is_new = |(other, _): (&Blob, usize)| other != blob;
                    if layers.iter().zip(0..index).all(is_new) {
                        // Each reader of a stream has its own.
                        let storage = match blob.is_of {
                            Subject::File => stored,
                            Subject::Content => tar()?,
                        };
                        blobs.push(Stated { storage, sum: Box::new(digest) });
                    }
                }
                let missing = || self.files.corrupt("lacks the layer of a disk");
                let storage = Arc::new(content.ok_or_else(missing)?);
                let ends_like_image = member.ends_like_image;
                Ok(Content { storage, blobs, format: None, ends_like_image })
            }
        }
    }

    fn known_sizes(&self) -> MutexGuard<'_, HashMap<Vec<u8>, u64>> {
        self.known_sizes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self) -> Result<&Found> {
        if self.found.get().is_none() {
            let found = self.find()?;
            let _ = self.found.set(found);
        }
        Ok(self.found.get().expect("was set"))
    }

    /// Reads the documents. An archive may have an index, and a list as Docker writes it.
    fn find(&self) -> Result<Found> {
        let files = &self.files;
        if let Some(name) = DOCUMENTS.iter().find(|name| files.has_other(name)) {
            let reason = format!("has the member \"{name}\", which is no file");
            return Err(files.error(ErrorKind::Unsupported, reason));
        }
        let [layout, index, docker] = DOCUMENTS.map(|name| files.has(name));
        if !layout {
            let found = docker::of_docker(files)?;
            if index {
                docker::check_same(files, &manifest::of_index(files)?)?;
            }
            return Ok(found);
        }
        let found = manifest::of_layout(files)?;
        if docker {
            docker::check_same(files, &found)?;
        }
        Ok(found)
    }

    fn listed(&self) -> Result<&[Disk]> {
        if self.disks.get().is_none() {
            let mut named = Vec::new();
            let mut count = 0;
            let images = &self.found()?.images;
            let mut layers = Layers::new(&self.files, &self.limits, images);
            for image in images {
                let disks = self.disks_of(image, &mut layers)?;
                count += disks.len();
                if count > MAX_DISKS {
                    let reason = format!("has more than {MAX_DISKS} disks");
                    return Err(self.files.error(ErrorKind::Unsupported, reason));
                }
                named.push(Named { image, disks });
            }
            let disks = names::unique(named).into_iter();
            let _ = self.disks.set(disks.map(|(name, place)| Disk { name, place }).collect());
        }
        Ok(self.disks.get().expect("was set"))
    }

    /// Returns the disks of one image.
    fn disks_of<'a>(
        &'a self,
        image: &'a manifest::Image,
        scanned: &mut Layers<'a>,
    ) -> Result<Vec<(Vec<u8>, Place)>> {
        let (layers, others): (Vec<_>, Vec<_>) =
            image.layers.iter().partition(|layer| Role::of(layer) == Role::Tar);
        // Some runtimes extract these, too, and some pass them over.
        if let (Some(other), false) = (others.first(), layers.is_empty()) {
            return Err(self.unclear(other));
        }
        let mut disks = Vec::new();
        for layer in others {
            let disk = self.disk_of(layer)?;
            if image.is_container && self.is_tar(&layer.blob, disk.is_some())? {
                return Err(self.unclear(layer));
            }
            disks.extend(disk);
        }
        let mut folder = Folder::default();
        for (index, layer) in layers.iter().enumerate() {
            if let Some(size) = scanned.apply(&mut folder, &layer.blob, index)? {
                self.known_sizes().insert(layer.blob.file.clone(), size);
            }
        }
        let layers: Arc<[Blob]> = layers.iter().map(|layer| layer.blob.clone()).collect();
        for (name, member) in folder.disks(&self.files)? {
            disks.push((name, Place::Layer { layers: layers.clone(), member }));
        }
        Ok(disks)
    }

    /// Returns the error of a layer that runtimes may extract, against its type.
    fn unclear(&self, layer: &Layer) -> Error {
        let (digest, media_type) = (&layer.blob.digest, excerpt(layer.media_type.as_bytes()));
        let reason = format!(
            "has the layer {digest} of the type \"{media_type}\" for a root file system, which programs read differently"
        );
        self.files.error(ErrorKind::Unsupported, reason)
    }

    /// Returns whether a blob may be a tar archive, which may be compressed. A disk by its type is one if its content
    /// begins like one.
    fn is_tar(&self, blob: &Blob, is_disk: bool) -> Result<bool> {
        let storage = self.files.open(&blob.file)?;
        let mut block = vec![0; storage.size().min(tar::BLOCK) as usize];
        let read = storage.read_exact_at(&mut block, 0);
        read.map_err(|error| storage::read_error(self.files.name(), error, Some(0)))?;
        if tar::is_tar(&block) {
            return Ok(true);
        }
        if detect::compression(&*storage, self.files.name())?.is_none() {
            return Ok(false);
        }
        if !is_disk {
            return Ok(true);
        }
        let mut block = [0; tar::BLOCK as usize];
        let scan = Scan::new(&self.limits, &self.files, storage)?;
        Ok(scan.tar.read_exact_at(&mut block, 0).is_ok() && tar::is_tar(&block))
    }

    /// Returns the disk that a layer is, if it is one.
    fn disk_of(&self, layer: &Layer) -> Result<Option<(Vec<u8>, Place)>> {
        let blob = layer.blob.clone();
        let place = match Role::of(layer) {
            Role::Tar => return Ok(None),
            Role::Disk { format, compression } => {
                let size = layer.size.filter(|_| format == Some(Format::Raw));
                Place::Blob { blob, format, compression, size }
            }
            Role::Unknown => {
                let storage = self.files.open(&blob.file)?;
                let mut head = vec![0; storage.size().min(PROBE_SIZE as u64) as usize];
                let read = storage.read_exact_at(&mut head, 0);
                read.map_err(|error| {
                    let reason = format!("blob {} cannot be read", blob.digest);
                    self.files.error(ErrorKind::Io, reason).because(error)
                })?;
                match probe(&head) {
                    None => return Ok(None),
                    format => Place::Blob { blob, format, compression: None, size: None },
                }
            }
        };
        Ok(Some((names::of_layer(layer), place)))
    }
}

/// Returns whether a name needs no escapes in a check file.
fn is_plain(name: &str) -> bool {
    !name.contains(['\n', '\r', '\\', '\0'])
}

/// Maximum number of disks of all images.
/// Limit in disks.
const MAX_DISKS: usize = 256;

/// The files of which one makes a folder or an archive one of images, and the index.
const DOCUMENTS: [&str; 3] = [LAYOUT, "index.json", "manifest.json"];

/// The file that makes a folder a layout.
const LAYOUT: &str = "oci-layout";

const TAR: &[u8] = b".tar";
