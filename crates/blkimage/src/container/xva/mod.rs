//! Exports of XenServer and XCP-ng (`.xva`): the disks of a virtual machine, by their references.
//!
//! Each block has a checksum, which every read compares. An archive may be compressed whatever its name is, and is then decoded
//! once, by the pass that reads the disk.

mod blocks;
mod machine;
mod ordered;
mod plain;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::machine::Disk;
use self::ordered::InOrder;
use self::plain::Content;
use super::choice;
use super::forward::Forward;
use super::kind::{Container, Kind, Manifest, Opened, whole};
use super::name::member_name;
use crate::Format;
use crate::archive_names;
use crate::compressed::{self, Make, Ordered};
use crate::compression::Compression;
use crate::error::{ErrorKind, Result};
use crate::image::Image;
use crate::location::telling;
use crate::options::OpenOptions;
use crate::storage::{self, HostFile, Storage};
use crate::tar::{Entry, Reader, is_tar};

pub(super) const KIND: Kind = Kind {
    noun: "an XVA archive (XenServer)",
    extensions: archive_names::XVA,
    is_at: |_| false,
    begins: |_, head| begins(head),
    open_folder: None,
    archives: archive_names::XVA,
    open_storage,
    files: None,
};

/// An open archive.
struct Xva {
    name: PathBuf,
    storage: Arc<dyn Storage>,
    compression: Option<Compression>,
    disks: Vec<Disk>,
}

fn open_storage(options: &OpenOptions, storage: Arc<dyn Storage>, path: &Path) -> Opened {
    let head = whole(storage.clone(), path).read_head(512)?;
    if !begins(&head) {
        return Ok(None);
    }
    let compression = Compression::of_head(&head).filter(|_| !is_tar(&head));
    // The content of other compressed files is not decoded to look for an archive.
    if compression.is_some() && !KIND.has_name(&telling(path)) {
        return Ok(None);
    }
    let forward: Arc<dyn Storage> = match compression {
        None => storage.clone(),
        Some(compression) => {
            compressed::check_archive(options, compression, path)?;
            let stream = compressed::reader(options, compression, &storage);
            let stream = stream.map_err(|error| storage::read_error(path, error, None))?;
            Forward::new(stream, 0)
        }
    };
    let file = whole(forward, path);
    let disks = match read_machine(&file)? {
        Some(text) => machine::disks(&text).map_err(|reason| {
            file.corrupt(format!("its description of the machine (ova.xml) {reason}"))
        })?,
        None => return Ok(None),
    };
    Ok(Some(Box::new(Xva { name: path.into(), storage, compression, disks })))
}

fn begins(head: &[u8]) -> bool {
    is_tar(head) && head.starts_with(b"ova.xml\0") || Compression::of_head(head).is_some()
}

/// Returns the description of the machine, the first member. `None` if the first member is another one.
fn read_machine(file: &HostFile) -> Result<Option<Vec<u8>>> {
    let entry = Reader::new(file, 1).entry()?;
    let is_it = |entry: &Entry| entry.is_file() && entry.name == b"ova.xml";
    let Some(entry) = entry.filter(is_it) else { return Ok(None) };
    if entry.size > MAX_TEXT {
        let reason = format!("has a description of more than {} MiB", MAX_TEXT >> 20);
        return Err(file.error(ErrorKind::Unsupported, reason).at(entry.offset));
    }
    let mut text = vec![0; entry.size as usize];
    file.read_exact_at(&mut text, entry.offset)?;
    Ok(Some(text))
}

impl Container for Xva {
    fn disks(&self) -> Result<Vec<Vec<u8>>> {
        Ok(self.disks.iter().map(|disk| disk.reference.clone().into_bytes()).collect())
    }

    fn open(&self, options: &OpenOptions, member: &[u8]) -> Result<Image> {
        let disk = self.find(member)?;
        // A disk is raw: its guest could write any header into it.
        let format = Some(options.format.unwrap_or(Format::Raw));
        let options = OpenOptions { format, ..options.clone() };
        let content: Box<dyn Storage> = match self.compression {
            None => {
                let file = whole(self.storage.clone(), &self.name);
                Box::new(Content::new(&file, self.storage.clone(), disk)?)
            }
            Some(compression) => self.in_order(&options, compression, disk)?,
        };
        options.open_storage(content, &member_name(&self.name, member).to_string_lossy())
    }

    /// Every read compares the checksums of blocks.
    fn manifest(&self) -> Result<Manifest> {
        Ok(Manifest { text: Vec::new(), disks: self.disks()?, read: self.disks()? })
    }

    fn resolve(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.find(name).map(|disk| disk.reference.clone().into_bytes())
    }
}

impl Xva {
    /// Returns the disk with this reference, or the only one with this number at the machine or this name.
    fn find(&self, name: &[u8]) -> Result<&Disk> {
        if let Some(disk) = self.disks.iter().find(|disk| disk.reference.as_bytes() == name) {
            return Ok(disk);
        }
        let has = |text: &Option<String>| text.as_ref().is_some_and(|it| it.as_bytes() == name);
        let mut found = self.disks.iter().filter(|disk| has(&disk.device) || has(&disk.label));
        match (found.next(), found.next()) {
            (Some(disk), None) => Ok(disk),
            _ => {
                let file = whole(self.storage.clone(), &self.name);
                let names = self.disks.iter().map(|disk| disk.reference.as_bytes());
                Err(file.error(ErrorKind::Format, choice::unknown(name, names)))
            }
        }
    }

    /// Returns the content of a disk of a compressed archive.
    fn in_order(
        &self,
        options: &OpenOptions,
        compression: Compression,
        disk: &Disk,
    ) -> Result<Box<dyn Storage>> {
        let OpenOptions { max_zeros, max_memory, .. } = *options;
        let limits = OpenOptions::new().max_zeros(max_zeros).max_memory(max_memory);
        let (storage, name, disk) = (self.storage.clone(), self.name.clone(), disk.clone());
        let stored = storage.size();
        let shape =
            Ordered { size: disk.size, stored, before: stored, compression: Some(compression) };
        let make: Make = Box::new(move || {
            let stream = compressed::reader(&limits, compression, &storage)?;
            Ok(Box::new(InOrder::new(stream, &name, &disk)))
        });
        compressed::ordered(options, self.storage.clone(), &self.name, shape, make, None)
    }
}

/// Maximum size of the description of a machine in an XVA archive.
/// Limit in bytes.
const MAX_TEXT: u64 = 16 << 20;
