//! Indexes: B+ trees, whose root is in the MFT and whose other blocks are in `$INDEX_ALLOCATION`.

use super::attribute::{FileName, kind};
use super::boot::{Boot, MAX_RECORD};
use super::content::Content;
use super::record::Reference;
use crate::bytes::{le16_at, le32_at, le64_at};

/// An index with blocks outside of the MFT.
pub(super) struct Index {
    pub blocks: Content,
    /// Size of a block in bytes.
    pub block: usize,
    /// A bit for each block that is in use.
    pub bitmap: Content,
    /// Number of bytes that a block number counts.
    unit: u64,
    /// Whether the keys are names of files.
    pub is_directory: bool,
}

/// The name of the index of a directory, `$I30`.
pub(super) const DIRECTORY: &[u8] = b"$\0I\x003\x000\0";

impl Index {
    /// Returns the index with a name in UTF-16, from the records of a file. `None` if it has no blocks.
    pub fn find(records: &[&[u8]], name: &[u8], boot: &Boot) -> Result<Option<Self>, &'static str> {
        let find = |kind| Content::find(records, kind, |it| it == name, boot);
        let Some(blocks) = find(kind::INDEX_ALLOCATION)? else { return Ok(None) };
        let root = match find(kind::INDEX_ROOT)? {
            Some(Content::Resident(root)) => root,
            _ => return Err("an index without a root"),
        };
        let block = u64::from(le32_at(&root, 8).unwrap_or_default());
        if !block.is_power_of_two() || !(512..=MAX_RECORD).contains(&block) {
            return Err("an index with impossible sizes");
        }
        let bitmap = find(kind::BITMAP)?.ok_or("an index without a bitmap")?;
        let unit = if boot.cluster <= block { boot.cluster } else { 512 };
        let (block, is_directory) = (block as usize, name == DIRECTORY);
        Ok(Some(Self { blocks, block, bitmap, unit, is_directory }))
    }

    /// Returns whether a block states the number that it must have at this offset.
    pub fn is_at(&self, block: &[u8], offset: u64) -> bool {
        le64_at(block, 16).is_some_and(|number| Some(offset) == number.checked_mul(self.unit))
    }
}

impl Index {
    /// Returns the offset of a block on the volume.
    pub fn offset(&self, at: u64) -> u64 {
        match &self.blocks {
            Content::NonResident(stream) => {
                stream.places(at, 1).next().and_then(|place| place.offset).unwrap_or_default()
            }
            Content::Resident(_) => 0,
        }
    }
}

/// Returns what is wrong in the content of a block.
pub(super) fn block_defect(block: &[u8], is_directory: bool) -> Option<&'static str> {
    defect(block, HEADER, is_directory)
}

/// Returns what is wrong in the content of a root.
pub(super) fn root_defect(root: &[u8], is_directory: bool) -> Option<&'static str> {
    defect(root, ROOT_HEADER, is_directory)
}

fn defect(bytes: &[u8], header: usize, is_directory: bool) -> Option<&'static str> {
    let field = |at: usize| le32_at(bytes, at).unwrap_or_default() as usize;
    let (start, end, room) = (field(header), field(header + 4), field(header + 8));
    let is_valid = start >= 16
        && start.is_multiple_of(8)
        && start < end
        && end <= room
        && room.checked_add(header) == Some(bytes.len());
    if !is_valid {
        return Some("impossible sizes");
    }
    let mut rest = bytes.get(header + start..header + end)?;
    loop {
        let length = usize::from(le16_at(rest, 8).unwrap_or_default());
        let Some((entry, next)) = rest.split_at_checked(length).filter(|_| length >= 16) else {
            return Some("entries without an end");
        };
        let flags = le16_at(entry, 12).unwrap_or_default();
        let child = if flags & HAS_CHILD == 0 { 0 } else { 8 };
        let is_last = flags & IS_LAST != 0;
        let key_length = if is_last { 0 } else { usize::from(le16_at(entry, 10)?) };
        if !length.is_multiple_of(8) || 16 + key_length + child > length {
            return Some("an entry with impossible sizes");
        }
        if is_last {
            return (!next.is_empty()).then_some("bytes after the last entry");
        }
        let key = entry.get(16..16 + key_length)?;
        if is_directory && FileName::parse(key).is_none_or(|it| it.name.is_empty()) {
            return Some("an entry with an impossible name");
        }
        rest = next;
    }
}

/// Offset of the sizes in a block, and in a root.
const HEADER: usize = 24;
const ROOT_HEADER: usize = 16;

/// Flags of an entry.
const HAS_CHILD: u16 = 1;
const IS_LAST: u16 = 2;

/// Returns the entries of a root.
pub(super) fn entries_of_root(root: &[u8]) -> Entries<'_> {
    Entries::new(root, ROOT_HEADER)
}

/// Returns the entries of a block.
pub(super) fn entries_of_block(block: &[u8]) -> Entries<'_> {
    Entries::new(block, HEADER)
}

/// Iterator over the entries of a directory, up to the first that is damaged.
pub(super) struct Entries<'a> {
    bytes: &'a [u8],
}

impl<'a> Entries<'a> {
    fn new(bytes: &'a [u8], header: usize) -> Self {
        let part = || {
            let start = header.checked_add(le32_at(bytes, header)? as usize)?;
            let end = header.checked_add(le32_at(bytes, header + 4)? as usize)?;
            bytes.get(start..end)
        };
        Self { bytes: part().unwrap_or_default() }
    }
}

impl<'a> Iterator for Entries<'a> {
    /// The file, and the key.
    type Item = (Reference, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(le16_at(self.bytes, 8)?);
        let key_length = usize::from(le16_at(self.bytes, 10)?);
        let is_last = le16_at(self.bytes, 12)? & IS_LAST != 0;
        if is_last || length < 16 {
            return None;
        }
        let (entry, rest) = self.bytes.split_at_checked(length)?;
        let key = entry.get(16..16 + key_length)?;
        self.bytes = rest;
        Some((Reference::from_raw(le64_at(entry, 0)?), key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries() {
        let mut block = vec![0; 24 + 16 + 32 + 16];
        (block[24], block[28], block[32]) = (16, 64, 64);
        (block[40], block[48], block[50]) = (7, 32, 4);
        block[56..60].copy_from_slice(b"name");
        (block[80], block[84]) = (16, 2);
        let found: Vec<_> = entries_of_block(&block).collect();
        assert_eq!(found, [(Reference { number: 7, sequence: 0 }, &b"name"[..])]);
        assert_eq!(block_defect(&block, false), None);
        assert!(block_defect(&block, true).is_some());
        for (at, value) in [(48, 0), (48, 200), (50, 40), (24, 200), (28, 200)] {
            let mut block = block.clone();
            block[at] = value;
            assert_eq!(entries_of_block(&block).count(), 0);
            assert!(block_defect(&block, false).is_some());
        }
        for (at, value) in [(32, 71), (84, 0), (80, 8), (52, 1), (24, 12)] {
            let mut block = block.clone();
            block[at] = value;
            assert_eq!(block_defect(&block, false).is_some(), at != 52);
        }
    }
}
