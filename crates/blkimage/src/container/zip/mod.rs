//! zip archives: members that are stored or compressed by deflate.
//!
//! The archive is a file that people made to pass disks on, so its name decides. A member refers to no other file, and
//! nothing is unpacked.

mod content;
mod directory;
mod end;
mod fields;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use self::content::{Crc32, Inflated};
use self::directory::{Member, Method};
use super::checked::{Checked, Stated};
use super::choice;
use super::entries::{beneath_file, key, refusal};
use super::kind::{Container, Kind, Manifest, Opened, whole};
use super::name::member_name;
use crate::archive_names;
use crate::compressed::{self, Make, Ordered};
use crate::error::{ErrorKind, Result, excerpt};
use crate::image::Image;
use crate::options::OpenOptions;
use crate::probe::PROBE_SIZE;
use crate::storage::part::Part;
use crate::storage::{HostFile, Storage};

pub(super) const KIND: Kind = Kind {
    noun: "a zip archive",
    extensions: archive_names::ZIP,
    is_at: |_| false,
    // Under the name of one, the last one of several volumes and one after a program are recognised by their end.
    begins: |path, head| KIND.has_name(path) || is_zip(head),
    open_folder: None,
    archives: archive_names::ZIP,
    open_storage,
    files: None,
};

/// An open archive.
struct Zip {
    file: HostFile,
    storage: Arc<dyn Storage>,
    members: Vec<Member>,
    /// Indices by [`key`], of files only.
    files: BTreeMap<Vec<u8>, usize>,
}

fn open_storage(_: &OpenOptions, storage: Arc<dyn Storage>, path: &Path) -> Opened {
    let file = whole(storage.clone(), path);
    if !is_zip(&file.read_head(PROBE_SIZE)?) && !end::is_there(&file)? {
        return Ok(None);
    }
    Ok(Some(Box::new(Zip::new(storage, path)?)))
}

/// Returns whether a file begins like an archive, which may be empty or one of several volumes.
fn is_zip(head: &[u8]) -> bool {
    [&b"PK\x03\x04"[..], b"PK\x05\x06", b"PK\x07\x08"].iter().any(|magic| head.starts_with(magic))
}

impl Container for Zip {
    fn disks(&self) -> Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        for member in self.files() {
            if choice::is_disk(&member.name, &self.head(member)?) {
                found.push(member.name.clone());
            }
        }
        let disks = choice::disks(found, self.files().map(|member| &*member.name));
        disks.map_err(|reason| self.file.error(ErrorKind::Format, reason))
    }

    fn open(&self, options: &OpenOptions, member: &[u8]) -> Result<Image> {
        let found = self.find(member)?;
        let name = member_name(self.file.name(), member);
        let content = self.content(options, found)?;
        options.open_storage(content, &name.to_string_lossy())
    }

    fn manifest(&self) -> Result<Manifest> {
        let mut text = String::new();
        for member in self.files() {
            let name = std::str::from_utf8(&member.name).ok();
            let name = name.filter(|name| !name.contains(['\n', '\r'])).ok_or_else(|| {
                let reason = format!(
                    "has the member \"{}\", whose name is not one of a check file",
                    excerpt(&member.name)
                );
                self.file.error(ErrorKind::Unsupported, reason).at(member.header)
            })?;
            let _ = writeln!(text, "CRC32 ({name}) = {:08x}", member.crc);
        }
        Ok(Manifest { text: text.into_bytes(), disks: Vec::new(), read: Vec::new() })
    }

    fn resolve(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.find(name).map(|member| member.name.clone())
    }
}

impl Zip {
    fn new(storage: Arc<dyn Storage>, name: &Path) -> Result<Self> {
        let file = whole(storage.clone(), name);
        let members = directory::members(&file)?;
        let mut all = BTreeMap::new();
        for (index, member) in members.iter().enumerate() {
            let shown = excerpt(&member.name);
            if let Some(reason) = refusal(&member.name, member.is_folder) {
                let reason = format!("has the member \"{shown}\", {reason}");
                return Err(file.error(ErrorKind::Unsupported, reason).at(member.header));
            }
            if let Some(other) = all.insert(key(&member.name), index)
                && !(member.is_folder && members[other].is_folder)
            {
                let reason = format!("has two members with the name \"{shown}\"");
                return Err(file.corrupt(reason).at(member.header));
            }
        }
        if let Some((outer, inner)) = beneath_file(&all, |index| members[index].is_folder) {
            let (outer, inner) = (&members[outer], &members[inner]);
            let (name, inner_name) = (excerpt(&outer.name), excerpt(&inner.name));
            let reason =
                format!("has the file \"{name}\", and \"{inner_name}\" in a folder of this name");
            return Err(file.corrupt(reason).at(inner.header));
        }
        all.retain(|_, index| !members[*index].is_folder);
        Ok(Self { file, storage, members, files: all })
    }

    /// Returns the members that are files, in the order of the directory.
    fn files(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_folder)
    }

    fn find(&self, name: &[u8]) -> Result<&Member> {
        let found = self.files.get(&key(name)).filter(|_| !name.contains(&0));
        found.map(|index| &self.members[*index]).ok_or_else(|| {
            let reason = choice::unknown(name, self.files().map(|member| &*member.name));
            self.file.error(ErrorKind::Format, reason)
        })
    }

    /// Returns the first bytes of a member, or none of one that is not read.
    fn head(&self, member: &Member) -> Result<Vec<u8>> {
        let length = member.size.min(PROBE_SIZE as u64);
        let mut head = vec![0; length as usize];
        match member.method {
            Method::Stored => self.file.read_exact_at(&mut head, member.data)?,
            Method::Deflate => {
                let mut reader = Inflated::new(self.storage.clone(), member);
                let read = reader.read_exact(&mut head);
                read.map_err(|error| crate::storage::read_error(self.file.name(), error, None))?;
            }
            Method::Other(_) | Method::Encrypted => head.clear(),
        }
        Ok(head)
    }

    fn content(&self, options: &OpenOptions, member: &Member) -> Result<Box<dyn Storage>> {
        let storage = self.storage.clone();
        let Member { data, size, stored, .. } = *member;
        match member.method {
            Method::Stored => {
                let part = || Arc::new(Part { storage: self.storage.clone(), offset: data, size });
                let sum = Box::new(Crc32::new(member));
                Ok(Box::new(Checked::new(part(), vec![Stated { storage: part(), sum }])))
            }
            Method::Deflate => {
                let shape = Ordered { size, stored, before: 0, compression: None };
                let (archive, member) = (storage.clone(), member.clone());
                let make: Make = Box::new(move || {
                    io::Result::Ok(Box::new(Inflated::new(archive.clone(), &member)))
                });
                compressed::ordered(options, storage, self.file.name(), shape, make, None)
            }
            method @ (Method::Other(_) | Method::Encrypted) => {
                let name = excerpt(&member.name);
                let reason = format!("its member \"{name}\" {}", method.describe());
                Err(self.file.error(ErrorKind::Unsupported, reason).at(member.header))
            }
        }
    }
}
