//! Backups of Proxmox VE (`.vma`, and `.vma.zst`, `.vma.gz` and `.vma.lzo`): the disks of a virtual machine, by the names of its drives.
//!
//! Headers have MD5 digests, which are compared, and each cluster is there once. The bytes of clusters have no checksum but
//! the one of the compression.

mod extent;
mod header;
mod ordered;
mod plain;

#[cfg(test)]
mod tests;

use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::header::{Device, FIXED, Header, MAGIC, size_of};
use self::ordered::InOrder;
use self::plain::Disk;
use super::choice;
use super::forward::Stream;
use super::kind::{Container, Kind, Manifest, Opened, whole};
use super::name::{has_extension, member_name};
use super::runs::Runs;
use crate::archive_names;
use crate::compressed::{self, Bytes, Make, Ordered};
use crate::compression::Compression;
use crate::error::{ErrorKind, Result};
use crate::image::Image;
use crate::location::telling;
use crate::options::OpenOptions;
use crate::storage::{self, HostFile, Storage};

pub(super) const KIND: Kind = Kind {
    noun: "a VMA archive (Proxmox)",
    extensions: archive_names::VMA,
    is_at: |_| false,
    begins: |_, head| begins(head),
    open_folder: None,
    archives: archive_names::VMA,
    open_storage,
    files: None,
};

/// An open archive.
struct Vma {
    name: PathBuf,
    storage: Arc<dyn Storage>,
    compression: Option<Compression>,
    header: Header,
}

fn open_storage(options: &OpenOptions, storage: Arc<dyn Storage>, path: &Path) -> Opened {
    let head = whole(storage.clone(), path).read_head(512)?;
    if !begins(&head) {
        return Ok(None);
    }
    let name = telling(path);
    let is_named = KIND.has_name(&name);
    let compression = Compression::of_head(&head);
    // The content of other compressed files is not decoded to look for an archive.
    if compression.is_some() && (!is_named || has_extension(name.as_os_str().as_bytes(), b".vma")) {
        return Ok(None);
    }
    if let Some(compression) = compression {
        compressed::check_archive(options, compression, path)?;
    }
    let stream = stream(options, compression, &storage);
    let mut stream = stream.map_err(|error| storage::read_error(path, error, None))?;
    let file = whole(storage.clone(), path);
    let header = read_header(&file, &mut stream)?;
    Ok(Some(Box::new(Vma { name: path.into(), storage, compression, header })))
}

fn begins(head: &[u8]) -> bool {
    head.starts_with(MAGIC) || Compression::of_head(head).is_some()
}

/// Returns the bytes of an archive.
fn stream(
    options: &OpenOptions,
    compression: Option<Compression>,
    storage: &Arc<dyn Storage>,
) -> io::Result<Stream> {
    match compression {
        Some(compression) => compressed::reader(options, compression, storage),
        None => Ok(Box::new(Bytes::new(storage.clone(), 0..storage.size()))),
    }
}

fn read_header(file: &HostFile, stream: &mut Stream) -> Result<Header> {
    let mut read = |length: u64, bytes: &mut Vec<u8>| {
        let read = stream.by_ref().take(length).read_to_end(bytes);
        read.map_err(|error| storage::read_error(file.name(), error, None))
    };
    let mut bytes = Vec::new();
    read(FIXED as u64, &mut bytes)?;
    let head = bytes.first_chunk().ok_or_else(|| file.corrupt("is cut off in its header"))?;
    let size = size_of(head).map_err(|reason| file.corrupt(reason))?;
    read(size - FIXED as u64, &mut bytes)?;
    if bytes.len() as u64 != size {
        return Err(file.corrupt("is cut off in its header"));
    }
    Header::new(&bytes).map_err(|reason| file.corrupt(reason))
}

impl Container for Vma {
    fn disks(&self) -> Result<Vec<Vec<u8>>> {
        Ok(self.names().map(<[u8]>::to_vec).collect())
    }

    fn open(&self, options: &OpenOptions, member: &[u8]) -> Result<Image> {
        let device = self.find(member)?;
        // A disk is raw: its guest could write any header into it.
        let format = Some(options.format.unwrap_or(crate::Format::Raw));
        let options = OpenOptions { format, ..options.clone() };
        let content: Box<dyn Storage> = match self.compression {
            None => {
                let file = whole(self.storage.clone(), &self.name);
                let map = Disk::new(&file, &self.header, device)?;
                Box::new(Runs { storage: self.storage.clone(), map })
            }
            Some(compression) => self.in_order(&options, compression, device)?,
        };
        options.open_storage(content, &member_name(&self.name, member).to_string_lossy())
    }

    /// Every read compares the checksums of headers.
    fn manifest(&self) -> Result<Manifest> {
        Ok(Manifest { text: Vec::new(), disks: self.disks()?, read: self.disks()? })
    }

    fn resolve(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.find(name).map(|device| device.name.clone())
    }
}

impl Vma {
    fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.header.devices.iter().filter(|device| device.is_disk()).map(|device| &*device.name)
    }

    fn find(&self, name: &[u8]) -> Result<&Device> {
        let mut disks = self.header.devices.iter().filter(|device| device.is_disk());
        disks.find(|device| device.name == name).ok_or_else(|| {
            let file = whole(self.storage.clone(), &self.name);
            file.error(ErrorKind::Format, choice::unknown(name, self.names()))
        })
    }

    /// Returns the content of a disk of a compressed archive.
    fn in_order(
        &self,
        options: &OpenOptions,
        compression: Compression,
        device: &Device,
    ) -> Result<Box<dyn Storage>> {
        let (storage, header, device) = (self.storage.clone(), self.header.clone(), device.clone());
        let OpenOptions { max_zeros, max_memory, .. } = *options;
        let limits = OpenOptions::new().max_zeros(max_zeros).max_memory(max_memory);
        let max_held = max_memory.unwrap_or(DEFAULT_MAX_HELD);
        let stored = storage.size();
        let shape =
            Ordered { size: device.size, stored, before: stored, compression: Some(compression) };
        let make: Make = Box::new(move || {
            let mut stream = compressed::reader(&limits, compression, &storage)?;
            let skipped = io::copy(&mut stream.by_ref().take(header.size), &mut io::sink())?;
            if skipped < header.size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(Box::new(InOrder::new(stream, &header, &device, max_held)))
        });
        compressed::ordered(options, self.storage.clone(), &self.name, shape, make, None)
    }
}

/// Default maximum memory for clusters of a compressed VMA archive that come before their turn.
/// Limit in bytes.
const DEFAULT_MAX_HELD: u64 = 256 << 20;
