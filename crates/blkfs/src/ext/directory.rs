//! Directories: entries, hash trees, and the checksums of both.

use super::block_set::IN_USE;
use super::checksum::Check;
use super::inode::Inode;
use super::map::File;
use super::run::Run;
use super::walk::Walk;
use super::xattr;
use crate::bytes::{le16_at, le32_at, u8_at};
use crate::crc::crc32c;
use crate::error::Result;
use crate::visitor::{Entry, EntryKind, ObjectId};

impl Walk<'_> {
    /// Reads blocks of a directory.
    pub fn read_directory(&mut self, file: &mut File, run: Run) -> Result<()> {
        let has_checks = self.wanted.checks && self.sums.has_metadata();
        if !run.is_written || !(has_checks || self.wanted.names) {
            return Ok(());
        }
        let block_size = self.superblock.block_size;
        let count = file.size.div_ceil(block_size).saturating_sub(run.logical).min(run.count);
        let mut buffer = self.take_buffer();
        let mut done = 0;
        while done < count && file.bad_blocks < MAX_BAD_BLOCKS {
            let part = (count - done).min(self.blocks_per_read());
            buffer.resize((part * block_size) as usize, 0);
            let first = run.physical + done;
            if self.read(&mut buffer, first, "directory block", Some(file.object))? {
                for (block, bytes) in (first..).zip(buffer.chunks_exact(block_size as usize)) {
                    let logical = run.logical + (block - run.physical);
                    if file.bad_blocks < MAX_BAD_BLOCKS {
                        self.directory_block(file, logical, block, bytes);
                    }
                }
            }
            done += part;
        }
        self.give_buffer(buffer);
        Ok(())
    }

    fn directory_block(&mut self, file: &mut File, logical: u64, block: u64, bytes: &[u8]) {
        let offset = block * self.superblock.block_size;
        if !self.seen.content.insert(block) {
            let reason = format!("block {block} {IN_USE}");
            return self.damaged("directory block", offset, Some(file.object), reason);
        }
        self.check_use(block, "directory block", Some(file.object));
        let has_checks = self.wanted.checks && self.sums.has_metadata();
        let is_good = !has_checks || self.check_directory_block(file, logical, offset, bytes);
        let is_valid = !self.wanted.names || self.entries(file.object, offset, bytes);
        if is_good && is_valid {
            return;
        }
        file.bad_blocks += 1;
        if file.bad_blocks == MAX_BAD_BLOCKS {
            let reason = "what follows of this directory is not read".to_owned();
            self.damaged("directory block", offset, Some(file.object), reason);
        }
    }

    /// Checks a block of a directory. Returns whether it matches.
    fn check_directory_block(
        &mut self,
        file: &File,
        logical: u64,
        offset: u64,
        bytes: &[u8],
    ) -> bool {
        let (object, length) = (Some(file.object), bytes.len() as u64);
        let is_node = file.is_index && (logical == 0 || is_node(bytes));
        let (structure, check) = match is_node {
            true => ("htree node", check_node(file.seed, bytes)),
            false => ("directory block", check_leaf(file.seed, bytes)),
        };
        if check.is_none() {
            let reason = "there is no checksum".to_owned();
            self.damaged(structure, offset, object, reason);
        }
        self.check(check, structure, offset, length, object);
        check.is_some_and(|check| check.is_match())
    }

    /// Reports the names in bytes that are filled with entries. Returns whether all are valid.
    fn entries(&mut self, parent: ObjectId, offset: u64, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        let mut is_valid = true;
        while rest.len() >= HEADER {
            let Some((entry, behind)) = split_entry(rest, bytes.len()) else {
                let at = offset + (bytes.len() - rest.len()) as u64;
                let reason = "the length of an entry is invalid".to_owned();
                self.damaged("directory block", at, Some(parent), reason);
                return false;
            };
            rest = behind;
            let object = u64::from(le32_at(entry, 0).unwrap_or_default());
            let length = HEADER + usize::from(u8_at(entry, 6).unwrap_or_default());
            match entry.get(HEADER..length) {
                _ if object == 0 => {}
                Some(b"." | b".." | b"") => {}
                Some(name) if object <= self.superblock.inodes => {
                    let kind = EntryKind::Child;
                    self.entry(Entry { parent, object, name, kind });
                }
                _ => {
                    let at = offset + (bytes.len() - rest.len() - entry.len()) as u64;
                    let reason = format!("an entry for inode {object} is invalid");
                    self.damaged("directory block", at, Some(parent), reason);
                    is_valid = false;
                }
            }
        }
        is_valid
    }

    /// Reports the names of a directory in an inode: after the number of its parent, and in an attribute.
    pub fn inline_directory(&mut self, inode: &Inode<'_>) {
        let offset = self.inode_offset(inode.number);
        self.entries(inode.number, offset + 0x2c, inode.block().get(4..).unwrap_or_default());
        if let Some(value) = xattr::inline_value(inode) {
            self.entries(inode.number, offset + 128, value);
        }
    }
}

/// Splits the first entry off, in a block of `size` bytes.
fn split_entry(bytes: &[u8], size: usize) -> Option<(&[u8], &[u8])> {
    let length = entry_length(bytes, size)?;
    if length < HEADER || !length.is_multiple_of(4) {
        return None;
    }
    bytes.split_at_checked(length)
}

/// Returns the length of the first entry, whose two lowest bits are the highest ones in blocks of 64 KiB.
fn entry_length(bytes: &[u8], size: usize) -> Option<usize> {
    let length = usize::from(le16_at(bytes, 4)?);
    Some(match length {
        0 | 0xffff if size >= 1 << 16 => size,
        _ if size >= 1 << 16 => length & 0xfffc | (length & 3) << 16,
        _ => length,
    })
}

/// Returns whether a block that is not the first one is a node of a hash tree: it looks like one unused entry.
fn is_node(bytes: &[u8]) -> bool {
    le32_at(bytes, 0) == Some(0) && entry_length(bytes, bytes.len()) == Some(bytes.len())
}

/// Checks a block of entries. Its last 12 bytes look like an unused entry of type 0xde.
fn check_leaf(seed: u32, bytes: &[u8]) -> Option<Check> {
    let at = bytes.len().checked_sub(12)?;
    let is_tail = bytes[at..].starts_with(&[0, 0, 0, 0, 12, 0, 0, 0xde]);
    // The tail itself is not covered.
    let stored = le32_at(bytes, at + 8)?;
    is_tail.then(|| Check::new(crc32c(seed, &bytes[..at]), stored))
}

/// Checks a node of a hash tree, whose checksum is after the room for entries.
fn check_node(seed: u32, bytes: &[u8]) -> Option<Check> {
    let first = if is_node(bytes) { HEADER } else { 32 };
    let is_root = first == HEADER
        || le16_at(bytes, 4) == Some(12)
            && entry_length(bytes.get(12..)?, bytes.len()) == Some(bytes.len() - 12)
            && le32_at(bytes, 24) == Some(0)
            && u8_at(bytes, 29) == Some(8);
    let (capacity, count) = (le16_at(bytes, first)?, le16_at(bytes, first + 2)?);
    let at = first + usize::from(capacity) * 8;
    let covered = bytes.get(..first + usize::from(count) * 8)?;
    if !is_root || count > capacity {
        return None;
    }
    let tail = bytes.get(at..at + 8)?;
    let crc = crc32c(crc32c(crc32c(seed, covered), &tail[..4]), &[0; 4]);
    Some(Check::new(crc, le32_at(tail, 4)?))
}

/// Maximum number of damaged blocks of a directory, after which the rest is not read.
/// Limit in blocks.
const MAX_BAD_BLOCKS: u64 = 1000;

/// Size of the fields of an entry before the name.
const HEADER: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_entries() {
        let length = |low: u8, high: u8, size| entry_length(&[0, 0, 0, 0, low, high], size);
        assert_eq!(length(12, 0, 4096), Some(12));
        assert_eq!(length(0, 0, 4096), Some(0));
        assert_eq!(length(0, 0, 1 << 16), Some(1 << 16));
        assert_eq!(length(0xff, 0xff, 1 << 16), Some(1 << 16));
        assert_eq!(length(0xf4, 0xff, 1 << 16), Some(0xfff4));
        assert_eq!(entry_length(&[0; 5], 4096), None);
    }

    #[test]
    fn entries_stay_within_the_block() {
        let entry = |length: u8| [1, 0, 0, 0, length, 0, 1, 2, b'a', 0, 0, 0];
        assert!(split_entry(&entry(12), 12).is_some());
        for length in [0, 4, 7, 10, 16] {
            assert!(split_entry(&entry(length), 12).is_none(), "{length}");
        }
    }

    #[test]
    fn nodes_without_room_for_a_checksum() {
        let mut node = [0; 1024];
        node[5] = 4;
        node[8..12].copy_from_slice(&[126, 0, 1, 0]);
        assert!(check_node(0, &node).is_some());
        node[8] = 127;
        assert!(check_node(0, &node).is_none());
        node[8..12].copy_from_slice(&[3, 0, 4, 0]);
        assert!(check_node(0, &node).is_none());
        assert!(check_leaf(0, &[0; 1024]).is_none());
        assert!(check_leaf(0, &[]).is_none());
    }
}
