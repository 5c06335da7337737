//! Virtual appliances (`.ova`): a tar archive with a descriptor, disks and often a manifest.
//!
//! A disk is an image in a part of the file, and refers to no other file. Nothing is unpacked.

mod ovf;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use super::entries::{Entries, Rules};
use super::kind::{Container, Kind, Manifest, Opened, whole};
use super::name::{has_extension, member_name};
use crate::archive_names;
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::hint::Hint;
use crate::image::Image;
use crate::location::telling;
use crate::options::OpenOptions;
use crate::probe::{PROBE_SIZE, probe};
use crate::storage::part::Part;
use crate::storage::{HostFile, Storage};
use crate::tar::{Entry, is_tar};

pub(super) const KIND: Kind = Kind {
    noun: "an appliance",
    extensions: archive_names::OVA,
    is_at: |_| false,
    begins: |_, head| is_tar(head),
    open_folder: None,
    archives: archive_names::OVA,
    open_storage,
    files: None,
};

/// An open archive with a descriptor.
struct Ova {
    /// The bytes of the archive.
    file: HostFile,
    storage: Arc<dyn Storage>,
    entries: Entries,
    descriptor: Entry,
}

/// Opens the archive at a path. Fails if it has no descriptor, and the name of an appliance.
fn open_storage(_: &OpenOptions, storage: Arc<dyn Storage>, path: &Path) -> Opened {
    match Ova::new(storage, path)? {
        Some(ova) => Ok(Some(Box::new(ova))),
        None if KIND.has_name(&telling(path)) => {
            let reason = "is a tar archive without a descriptor (.ovf)";
            Err(Error::new(ErrorKind::Format, path, reason).with_hint(Hint::Raw))
        }
        None => Ok(None),
    }
}

impl Container for Ova {
    fn disks(&self) -> Result<Vec<Vec<u8>>> {
        let descriptor = self.text(&self.descriptor)?;
        let named = ovf::disks(&descriptor).map_err(|reason| {
            let name = excerpt(&self.descriptor.name);
            self.file.corrupt(format!("its descriptor \"{name}\" {reason}"))
        })?;
        for ovf::Disk { name, refusal, .. } in &named {
            if let Some(reason) = refusal {
                let reason = format!("its disk \"{}\" {reason}, which is not read", excerpt(name));
                return Err(self.file.error(ErrorKind::Unsupported, reason));
            }
        }
        if !named.is_empty() {
            let member = |disk: &ovf::Disk| {
                let member = self.referenced(&disk.name)?;
                self.check_size(member, disk)?;
                Ok(member.name.clone())
            };
            return named.iter().map(member).collect();
        }
        let mut found = Vec::new();
        for entry in self.entries.files() {
            let mut head = vec![0; entry.size.min(PROBE_SIZE as u64) as usize];
            self.file.read_exact_at(&mut head, entry.offset)?;
            if probe(&head).is_none() {
                continue;
            }
            if found.len() == ovf::MAX_DISKS {
                let reason = format!("has more than {} disks", ovf::MAX_DISKS);
                return Err(self.file.error(ErrorKind::Unsupported, reason));
            }
            found.push(self.entry(&entry.name)?.name.clone());
        }
        Ok(found)
    }

    fn open(&self, options: &OpenOptions, member: &[u8]) -> Result<Image> {
        let entry = self.entry(member)?;
        if options.format.is_none() && self.is_gzip(entry)? {
            let name = excerpt(&entry.name);
            let reason = format!("its member \"{name}\" is compressed (gzip), which is not read");
            let error = self.file.error(ErrorKind::Unsupported, reason).at(entry.offset);
            return Err(error.with_hint(Hint::Raw));
        }
        let storage = self.storage.clone();
        let part = Part { storage, offset: entry.offset, size: entry.size };
        options
            .open_storage(Box::new(part), &member_name(self.file.name(), member).to_string_lossy())
    }

    fn manifest(&self) -> Result<Manifest> {
        let mut found = self.entries.files().filter(|entry| has_extension(&entry.name, MANIFEST));
        let entry = found.next().ok_or_else(|| {
            self.file.error(ErrorKind::Format, "is an appliance without a manifest (.mf)")
        })?;
        if let Some(second) = found.next() {
            return Err(self.file.corrupt("has more than one manifest (.mf)").at(second.offset));
        }
        let text = self.text(entry)?;
        // A descriptor that is not understood does not match its line, either.
        let named = ovf::disks(&self.text(&self.descriptor)?).unwrap_or_default();
        let member = |disk: &ovf::Disk| self.referenced(&disk.name).map(|it| it.name.clone());
        let disks = named.iter().map(member).collect::<Result<_>>()?;
        Ok(Manifest { text, disks, read: Vec::new() })
    }

    fn resolve(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.entry(name).map(|entry| entry.name.clone())
    }
}

impl Ova {
    /// Opens the appliance in a storage. Returns `None` if it is no archive, or one without a descriptor.
    fn new(storage: Arc<dyn Storage>, name: &Path) -> Result<Option<Self>> {
        let file = whole(storage.clone(), name);
        if !is_tar(&file.read_head(PROBE_SIZE)?) {
            return Ok(None);
        }
        let entries = Entries::new(&file, RULES)?;
        let is_descriptor = |entry: &&Entry| has_extension(&entry.name, DESCRIPTOR);
        let mut found = entries.files().filter(is_descriptor);
        let (descriptor, second) = (found.next().cloned(), found.next().map(|entry| entry.offset));
        drop(found);
        if let Some(offset) = second {
            return Err(file.corrupt("has more than one descriptor (.ovf)").at(offset));
        }
        let Some(descriptor) = descriptor else { return Ok(None) };
        Ok(Some(Self { file, storage, entries, descriptor }))
    }

    /// Fails if the descriptor states another size for a member.
    fn check_size(&self, member: &Entry, disk: &ovf::Disk) -> Result<()> {
        match &disk.size {
            Some(stated) if stated.parse() != Ok(member.size) => {
                let (name, stated) = (excerpt(&member.name), excerpt(stated.as_bytes()));
                let size = member.size;
                let reason = format!(
                    "its disk \"{name}\" has {size} bytes, and the descriptor says \"{stated}\""
                );
                Err(self.file.corrupt(reason).at(member.offset))
            }
            _ => Ok(()),
        }
    }

    /// Returns the member that a reference of the descriptor names: a name, or one with `%` escapes as in a URI.
    fn referenced(&self, reference: &[u8]) -> Result<&Entry> {
        let decoded = percent_decoded(reference).filter(|name| name != reference);
        self.only([Some(reference.to_vec()), decoded].into_iter().flatten())
    }

    /// Returns the member with this name, here or in the folder of the descriptor.
    fn entry(&self, name: &[u8]) -> Result<&Entry> {
        self.only(std::iter::once(name.to_vec()))
    }

    /// Returns the only member that has one of the names, here or in the folder of the descriptor. Fails if there
    /// are several, between which programs choose differently.
    fn only(&self, names: impl Iterator<Item = Vec<u8>>) -> Result<&Entry> {
        let descriptor = &self.descriptor.name;
        let folder = descriptor.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let mut names = names.peekable();
        let given = names.peek().map(|name| excerpt(name)).unwrap_or_default();
        let in_both = names.flat_map(|name| [[&descriptor[..folder], &name].concat(), name]);
        let mut found = in_both.filter_map(|name| self.entries.find(&name));
        let first = found.next().ok_or_else(|| {
            let reason = format!("has no member with the name \"{given}\"");
            self.file.error(ErrorKind::Format, reason)
        })?;
        let Some(second) = found.find(|other| other.header() != first.header()) else {
            return Ok(first);
        };
        let (first_name, second_name) = (excerpt(&first.name), excerpt(&second.name));
        let reason = format!(
            "has the members \"{first_name}\" and \"{second_name}\", and \"{given}\" may name either"
        );
        Err(self.file.corrupt(reason).at(second.header()))
    }

    /// Returns whether a member is compressed without a word in the descriptor.
    fn is_gzip(&self, entry: &Entry) -> Result<bool> {
        let mut head = [0; GZIP.len()];
        if entry.size < head.len() as u64 {
            return Ok(false);
        }
        self.file.read_exact_at(&mut head, entry.offset)?;
        Ok(head == GZIP)
    }

    fn text(&self, entry: &Entry) -> Result<Vec<u8>> {
        if entry.size > MAX_TEXT {
            let name = excerpt(&entry.name);
            let reason = format!("its member \"{name}\" has more than {} MiB", MAX_TEXT >> 20);
            return Err(self.file.error(ErrorKind::Unsupported, reason).at(entry.offset));
        }
        let mut text = vec![0; entry.size as usize];
        self.file.read_exact_at(&mut text, entry.offset)?;
        Ok(text)
    }
}

/// Decodes the escapes of a URI. `None` if one is invalid.
fn percent_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            decoded.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?);
            rest = &after[2..];
        } else {
            decoded.push(byte);
        }
    }
    Some(decoded)
}

/// Files and folders. What is extracted after a link may go where it leads.
const RULES: Rules = Rules { max_headers: MAX_HEADERS, special: false, sparse: false };

const DESCRIPTOR: &[u8] = b".ovf";
const MANIFEST: &[u8] = b".mf";

/// The identification and the method, deflate, at the beginning of a gzip file.
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];

/// Maximum size of a descriptor or manifest of an appliance. Usual ones have a hundredth.
/// Limit in bytes.
const MAX_TEXT: u64 = 4 << 20;

/// Maximum number of headers of members of an appliance, which has tens of members. All headers are read for each disk,
/// and for each line of a manifest.
/// Limit in headers.
const MAX_HEADERS: u32 = 1000;
