//! The parent locator of a differencing image: the name of the parent, and how to recognise it.

use super::guid::Guid;
use super::header::Header;
use super::metadata::Item;
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::formats::fields::{Head, array};
use crate::storage::HostFile;

/// The parent that an image names.
pub(super) struct Parent {
    /// Name as a path of this system.
    pub name: Vec<u8>,
    /// Identifiers of the parent's content. The parent has one of them.
    pub linkages: Vec<Guid>,
}

impl Parent {
    pub fn read(file: &HostFile, item: Item) -> Result<Self> {
        let locator =
            Locator { file, item, head: Head::read(file, item.offset, item.length as usize)? };
        locator.parse()
    }
}

/// Fails unless the content of `parent` is that from which `child` was created.
pub(super) fn check(parent: &HostFile, child: &str, linkages: &[Guid]) -> Result<()> {
    let found = Header::read(parent)?.data_write;
    if linkages.contains(&found) {
        return Ok(());
    }
    let reason = format!(
        "is not the parent of {child}, or was changed since: its content has another identifier"
    );
    Err(parent.error(ErrorKind::Reference, reason))
}

struct Locator<'a> {
    file: &'a HostFile,
    item: Item,
    head: Head<'a>,
}

impl Locator<'_> {
    fn parse(&self) -> Result<Parent> {
        let bytes = self.head.bytes();
        if bytes.len() < TABLE {
            return Err(self.corrupt("is too short"));
        }
        let kind = Guid(array(bytes, 0));
        if kind != VHDX_PARENT {
            let reason = format!("parent locator has the unknown type {kind}");
            return Err(self.file.error(ErrorKind::Unsupported, reason).at(self.item.offset));
        }
        let count = usize::from(u16::from_le_bytes(array(bytes, 18)));
        let Some(entries) = bytes.get(TABLE..TABLE + count * ENTRY) else {
            return Err(self.corrupt("is too short"));
        };
        let mut values: [Option<String>; KEYS.len()] = Default::default();
        for entry in entries.chunks_exact(ENTRY) {
            let [key_at, value_at] = [0, 4].map(|at| u32::from_le_bytes(array(entry, at)));
            let [key_length, value_length] = [8, 10].map(|at| u16::from_le_bytes(array(entry, at)));
            let key = self.text(key_at, key_length)?;
            let Some(index) = KEYS.iter().position(|known| *known == key) else { continue };
            if values[index].replace(self.text(value_at, value_length)?).is_some() {
                return Err(self.corrupt("has two entries of one name"));
            }
        }
        let [linkage, other_linkage, relative, absolute, volume] = values;
        let mut linkages = Vec::new();
        for text in [linkage, other_linkage].into_iter().flatten() {
            match Guid::parse(&text) {
                Some(guid) => linkages.push(guid),
                None => {
                    return Err(self.corrupt("identifies the parent by something else than a GUID"));
                }
            }
        }
        if linkages.is_empty() {
            return Err(self.corrupt("does not identify the parent"));
        }
        let names = || [&relative, &absolute, &volume].into_iter().flatten();
        match names().find_map(|name| to_path(name)) {
            Some(name) => Ok(Parent { name, linkages }),
            None => Err(self.no_path(names().next())),
        }
    }

    /// Decodes a string of the locator.
    fn text(&self, at: u32, length: u16) -> Result<String> {
        let (start, length) = (at as usize, usize::from(length));
        let bytes = start.checked_add(length).and_then(|end| self.head.bytes().get(start..end));
        let Some(bytes) = bytes else {
            return Err(self.corrupt("has a string that lies outside of it"));
        };
        let units: &[[u8; 2]] = match bytes.as_chunks() {
            (units, []) if !units.is_empty() => units,
            _ => return Err(self.corrupt("has a string of an invalid length")),
        };
        let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
        char::decode_utf16(units)
            .collect::<Result<String, _>>()
            .map_err(|_| self.corrupt("has a string that is not UTF-16"))
    }

    fn no_path(&self, name: Option<&String>) -> Error {
        match name {
            Some(name) => {
                let name = excerpt(name.as_bytes());
                let reason =
                    format!("names its parent \"{name}\", which is not a path of this system");
                self.file.error(ErrorKind::Reference, reason)
            }
            None => self.corrupt("does not name the parent"),
        }
    }

    fn corrupt(&self, reason: &str) -> Error {
        self.file.corrupt(format!("parent locator {reason}")).at(self.item.offset)
    }
}

/// Converts a Windows path. `None` if it begins with a drive, a server or a device.
fn to_path(name: &str) -> Option<Vec<u8>> {
    let path = name.replace('\\', "/");
    let has_drive = path.as_bytes().get(1) == Some(&b':');
    if has_drive || path.starts_with("//") { None } else { Some(path.into_bytes()) }
}

/// The keys that are used, in the order of their values above.
const KEYS: [&str; 5] =
    ["parent_linkage", "parent_linkage2", "relative_path", "absolute_win32_path", "volume_path"];

const VHDX_PARENT: Guid = Guid::new(0xb04aefb7_d19e_4a81_b789_25b8e9445913);

/// Offset of the table of entries, and size of an entry.
const TABLE: usize = 20;
const ENTRY: usize = 12;
