//! What the headers before a member say about it.

use super::header::{Header, LINK, decimal};
use super::sparse::Records;

/// Properties of a member from the headers before it.
#[derive(Default)]
pub(super) struct Extended {
    /// From a header of GNU tar.
    pub long_name: Option<Vec<u8>>,
    /// From PAX records.
    pub path: Option<Vec<u8>>,
    pub size: Option<u64>,
    pub has_records: bool,
    /// Records of a file with holes.
    pub sparse: Records,
    /// Where a link leads, from a header of GNU tar and from PAX records.
    long_link: Option<Vec<u8>>,
    link_path: Option<Vec<u8>>,
    is_linked: bool,
    is_odd_link: bool,
    /// Whether there are attributes by which an overlay of folders hides or moves files.
    pub is_overlay: bool,
}

impl Extended {
    /// Returns whether there was no header of a member before it.
    pub fn is_empty(&self) -> bool {
        self.long_name.is_none() && !self.has_records && !self.is_linked
    }

    /// Returns where a link leads. `None` if several headers state it.
    pub fn target(&self, header: &Header<'_>) -> Option<Vec<u8>> {
        match (&self.long_link, &self.link_path) {
            _ if self.is_odd_link => None,
            (Some(_), Some(_)) => None,
            (Some(target), None) | (None, Some(target)) => Some(target.clone()),
            (None, None) => Some(header.text(LINK).to_vec()),
        }
    }

    /// Takes over a name, which ends at the first NUL of whole blocks, whatever its size says.
    pub fn set_long_name(&mut self, blocks: &[u8]) -> Result<(), &'static str> {
        if self.long_name.is_some() {
            return Err("several long names of one member");
        }
        let end = blocks.iter().position(|byte| *byte == 0).ok_or("long names without an end")?;
        // Go takes the name of the member instead.
        if end == 0 {
            return Err("long names that are empty");
        }
        self.long_name = Some(blocks[..end].to_vec());
        Ok(())
    }

    /// Takes over where a link leads.
    pub fn set_long_link(&mut self, blocks: &[u8]) {
        let end = blocks.iter().position(|byte| *byte == 0);
        self.is_odd_link |= self.is_linked || end.is_none();
        self.is_linked = true;
        self.long_link = end.map(|end| blocks[..end].to_vec());
    }

    /// Takes over PAX records, each of which is `LENGTH KEY=VALUE\n`. Only zeros follow `size` bytes of
    /// them: Python's tarfile reads records beyond, too.
    pub fn add(&mut self, blocks: &[u8], size: usize) -> Result<(), &'static str> {
        const INVALID: &str = "invalid PAX records";
        let (mut records, padding) = blocks.split_at(size);
        if padding.iter().any(|byte| *byte != 0) {
            return Err(INVALID);
        }
        while !records.is_empty() {
            let blank = records.iter().position(|byte| *byte == b' ').ok_or(INVALID)?;
            let length = decimal(&records[..blank]).and_then(|length| usize::try_from(length).ok());
            let length = length.filter(|length| (blank + 2..=records.len()).contains(length));
            let (record, rest) = records.split_at(length.ok_or(INVALID)?);
            let record = record[blank + 1..].strip_suffix(b"\n").ok_or(INVALID)?;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or(INVALID)?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            match key {
                b"path" if value.is_empty() => return Err(INVALID),
                b"path" => self.path = Some(value.to_vec()),
                b"linkpath" if value.is_empty() || value.contains(&0) => return Err(INVALID),
                b"linkpath" => self.link_path = Some(value.to_vec()),
                b"size" => self.size = Some(decimal(value).ok_or(INVALID)?),
                _ if key.starts_with(b"GNU.sparse.") => self.sparse.add(key, value)?,
                // Parts of archives of several volumes, and folders of incremental ones.
                _ if key.starts_with(b"GNU.") => return Err("members with PAX records of GNU tar"),
                _ if OVERLAYS.iter().any(|start| key.starts_with(start)) => self.is_overlay = true,
                // A blank at either end is a part of the key in one program and not in another.
                [] | [b' ' | b'\t', ..] | [.., b' ' | b'\t'] => return Err(INVALID),
                _ => {}
            }
            records = rest;
        }
        Ok(())
    }
}

/// Beginnings of PAX records of attributes by which overlayfs and fuse-overlayfs hide, move or change files.
const OVERLAYS: [&[u8]; 4] = [
    b"SCHILY.xattr.trusted.overlay.",
    b"SCHILY.xattr.user.overlay.",
    b"SCHILY.xattr.user.fuseoverlayfs.",
    b"SCHILY.xattr.user.containers.",
];
