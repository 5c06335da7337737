//! tar archives with images, which may be compressed: boxes of vagrant, `disk.raw.tar.gz`, and those that vendors pass on.
//!
//! The name decides, because a guest could write an archive into its raw disk. A disk refers to no other file, and nothing is
//! unpacked. Files with holes have them. An archive that is compressed in one piece is decoded once, by the pass that reads
//! the disk.

mod holes;
mod members;
mod names;
mod stream;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use self::members::{RULES, is_disk};
use self::names::{Form, is_named};
use self::stream::{Compressed, Found};
use super::choice;
use super::entries::Entries;
use super::kind::{Container, Kind, Manifest, Opened, file_at, whole};
use super::name::member_name;
use super::runs::Runs;
use crate::Format;
use crate::archive_names;
use crate::compressed;
use crate::compression::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::hint::Hint;
use crate::image::Image;
use crate::location::telling;
use crate::options::OpenOptions;
use crate::probe::PROBE_SIZE;
use crate::storage::part::Part;
use crate::storage::{self, HostFile, Storage};
use crate::tar::{Entry, is_tar};

pub(super) const KIND: Kind = Kind {
    noun: "a tar archive",
    extensions: &[],
    is_at,
    begins: |_, head| begins(head),
    open_folder: None,
    archives: archive_names::TAR,
    open_storage,
    files: None,
};

/// An archive whose members are read in any order.
struct Whole {
    file: HostFile,
    storage: Arc<dyn Storage>,
    entries: Entries,
}

/// An archive that is decoded from start to end.
struct Streamed(Arc<Compressed>);

/// Returns whether a path names an archive by its name and its content.
fn is_at(path: &Path) -> bool {
    is_named(path) && head_of(path).is_some_and(|head| Form::of(path, &head).is_some())
}

fn begins(head: &[u8]) -> bool {
    is_tar(head) || Compression::of_head(head).is_some()
}

fn head_of(path: &Path) -> Option<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let file = file_at(path, begins).ok().flatten()?;
    let length = file.metadata().ok()?.len().min(PROBE_SIZE as u64);
    let mut head = vec![0; length as usize];
    file.read_exact_at(&mut head, 0).ok()?;
    Some(head)
}

fn open_storage(options: &OpenOptions, stored: Arc<dyn Storage>, path: &Path) -> Opened {
    let failed = |error| storage::read_error(path, error, None);
    let head = whole(stored.clone(), path).read_head(PROBE_SIZE)?;
    let compression = match Form::of(&telling(path), &head) {
        None => return Ok(None),
        Some(Form::Plain) => return Ok(Some(Box::new(Whole::new(stored, path)?))),
        Some(Form::Compressed(compression)) => compression,
    };
    compressed::check_archive(options, compression, path)?;
    let OpenOptions { max_zeros, max_memory, .. } = *options;
    let limits = OpenOptions::new().max_zeros(max_zeros).max_memory(max_memory).format(Format::Raw);
    let archive = Compressed { storage: stored, compression, limits, name: path.into() };
    if !is_tar(&stream::first_block(&archive, path)?) {
        let reason =
            format!("has the name of a compressed tar archive, and holds none ({compression})");
        return Err(Error::new(ErrorKind::Format, path, reason).with_hint(Hint::Raw));
    }
    let Compressed { storage, limits, .. } = &archive;
    if compressed::has_parts(limits, compression, storage).map_err(failed)? {
        let storage = compressed::content(limits, compression, storage.clone(), path)?;
        return Ok(Some(Box::new(Whole::new(storage.into(), path)?)));
    }
    Ok(Some(Box::new(Streamed(archive.into()))))
}

impl Whole {
    fn new(storage: Arc<dyn Storage>, name: &Path) -> Result<Self> {
        let file = whole(storage.clone(), name);
        let entries = Entries::new(&file, RULES)?;
        Ok(Self { file, storage, entries })
    }

    fn find(&self, name: &[u8]) -> Result<&Entry> {
        self.entries.find(name).ok_or_else(|| {
            let names = self.entries.files().map(|entry| &*entry.name);
            self.file.error(ErrorKind::Format, choice::unknown(name, names))
        })
    }
}

impl Container for Whole {
    fn disks(&self) -> Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        for entry in self.entries.files() {
            if is_disk(&self.file, entry)? {
                found.push(entry.name.clone());
            }
        }
        let disks = choice::disks(found, self.entries.files().map(|entry| &*entry.name));
        disks.map_err(|reason| self.file.error(ErrorKind::Format, reason))
    }

    fn open(&self, options: &OpenOptions, member: &[u8]) -> Result<Image> {
        let entry = self.find(member)?;
        let (storage, offset, size) = (self.storage.clone(), entry.offset, entry.size);
        let part = Box::new(Part { storage, offset, size });
        open_member(options, self.file.name(), member, entry, part)
    }

    fn manifest(&self) -> Result<Manifest> {
        Err(no_manifest(self.file.name()))
    }

    fn resolve(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.find(name).map(|entry| entry.name.clone())
    }
}

impl Container for Streamed {
    fn disks(&self) -> Result<Vec<Vec<u8>>> {
        self.0.disks()
    }

    fn is_stream(&self) -> bool {
        true
    }

    fn open_first(&self, options: &OpenOptions) -> Result<Image> {
        let found = self.0.find(None)?;
        let name = found.entry.name.clone();
        self.open_found(options, found, &name)
    }

    fn open(&self, options: &OpenOptions, member: &[u8]) -> Result<Image> {
        let found = self.0.find(Some(member))?;
        self.open_found(options, found, member)
    }

    fn manifest(&self) -> Result<Manifest> {
        Err(no_manifest(&self.0.name))
    }
}

impl Streamed {
    fn open_found(&self, options: &OpenOptions, found: Found, member: &[u8]) -> Result<Image> {
        let entry = found.entry.clone();
        let content = self.0.content(options, found)?;
        open_member(options, &self.0.name, member, &entry, content)
    }
}

/// Opens the image in a member, whose stored bytes are `content`.
fn open_member(
    options: &OpenOptions,
    archive: &Path,
    member: &[u8],
    entry: &Entry,
    content: Box<dyn Storage>,
) -> Result<Image> {
    let content = match &entry.sparse {
        Some(map) => Box::new(Runs { storage: content.into(), map: map.clone() }),
        None => content,
    };
    options.open_storage(content, &member_name(archive, member).to_string_lossy())
}

fn no_manifest(name: &Path) -> Error {
    let reason = "is a tar archive: the manifest of an appliance is checked if its name ends in .ova, and others have no checksums";
    Error::new(ErrorKind::Format, name, reason)
}
