//! Contribution of an item to the sum of its file tree.

use super::hasher::Hasher;
use super::names::{entries, entry, names};
use crate::backref::file_extent::counted_bytes;
use crate::bytes::{u32_at, u64_at};
use crate::rules::kind_of_mode;
use crate::tree::key::kind;
use crate::tree::{Key, object};

/// Returns the contribution of an item to the sum of its tree.
pub(super) fn promises(hasher: &Hasher, key: Key, bytes: &[u8]) -> Option<u64> {
    let inode = key.object;
    let size_of = |inode: u64| hasher.hash((SIZE, inode));
    let mut sum = 0u64;
    let mut add = |value: u64, times: u64| sum = sum.wrapping_add(value.wrapping_mul(times));
    match key.kind {
        kind::INODE => {
            let InodeItem { size, stored, links, format } = InodeItem::parse(bytes)?;
            if format == FOLDER {
                add(size_of(inode), size);
            }
            if matches!(format, FILE | SYMLINK) {
                add(stored_bytes(hasher, inode), stored);
            }
            if inode != object::ROOT_FOLDER {
                add(hasher.hash((LINKS, inode, format)), links.into());
            }
        }
        kind::FILE_EXTENT => {
            add(stored_bytes(hasher, inode), counted_bytes(bytes)?.wrapping_neg());
        }
        kind::INODE_REF | kind::INODE_EXTREF => {
            for (folder, index, name) in names(key, bytes) {
                if folder != inode {
                    add(hasher.hash((NAME, folder, index, inode, name)), 1);
                }
            }
        }
        kind::DIR_INDEX => {
            let (location, format, name) = entry(bytes)?;
            add(size_of(inode), (name.len() as u64).wrapping_neg());
            add(hasher.hash((ENTRY, inode, location, format, name)), u64::MAX);
            if location.kind == kind::INODE {
                let child = location.object;
                add(hasher.hash((NAME, inode, key.offset, child, name)), u64::MAX);
                add(hasher.hash((LINKS, child, format)), u64::MAX);
            }
        }
        kind::DIR_ITEM => {
            for (location, format, name) in entries(bytes) {
                add(size_of(inode), (name.len() as u64).wrapping_neg());
                add(hasher.hash((ENTRY, inode, location, format, name)), 1);
            }
        }
        _ => {}
    }
    Some(sum)
}

/// Returns the hash of one byte in the extents of an inode.
pub(super) fn stored_bytes(hasher: &Hasher, inode: u64) -> u64 {
    hasher.hash((STORED, inode))
}

/// Fields of an inode that other items must match.
pub(super) struct InodeItem {
    pub(super) size: u64,
    /// Bytes in its extents.
    pub(super) stored: u64,
    pub(super) links: u32,
    /// Kind of file.
    pub(super) format: u8,
}

impl InodeItem {
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            size: u64_at(bytes, 16)?,
            stored: u64_at(bytes, 24)?,
            links: u32_at(bytes, 40)?,
            format: kind_of_mode(u32_at(bytes, 52)?)?,
        })
    }
}

/// Kinds of files in folder entries.
pub(super) const FILE: u8 = 1;
pub(super) const FOLDER: u8 = 2;
pub(super) const SYMLINK: u8 = 7;

/// Kinds of hashed values.
const SIZE: u8 = 1;
const STORED: u8 = 2;
const LINKS: u8 = 3;
const NAME: u8 = 4;
const ENTRY: u8 = 5;
