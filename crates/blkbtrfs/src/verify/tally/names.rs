//! Parses names in folders and inodes.

use crate::bytes::{u8_at, u16_at, u64_at};
use crate::rules::{DIR_HEAD, EXTREF_HEAD, REF_HEAD};
use crate::tree::Key;
use crate::tree::key::kind;

/// Returns the folder, the index in the folder and the name of each back reference.
pub(super) fn names(key: Key, bytes: &[u8]) -> impl Iterator<Item = (u64, u64, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (folder, index, length, head) = if key.kind == kind::INODE_REF {
            (key.offset, u64_at(rest, 0)?, u16_at(rest, 8)?, REF_HEAD)
        } else {
            (u64_at(rest, 0)?, u64_at(rest, 8)?, u16_at(rest, 16)?, EXTREF_HEAD)
        };
        let name = rest.get(head..)?.get(..length.into())?;
        rest = &rest[head + name.len()..];
        Some((folder, index, name))
    })
}

/// Returns the location of an entry of a folder, the kind of file and the name.
pub(super) fn entry(bytes: &[u8]) -> Option<(Key, u8, &[u8])> {
    entries(bytes).next()
}

/// Returns all entries of an item, which has several if names share a hash.
pub(super) fn entries(bytes: &[u8]) -> impl Iterator<Item = (Key, u8, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (data, length) = (u16_at(rest, 25)?, u16_at(rest, 27)?);
        let found = (Key::parse(rest)?, u8_at(rest, 29)?);
        let name = rest.get(DIR_HEAD..)?.get(..length.into())?;
        rest = rest.get(DIR_HEAD + name.len() + usize::from(data)..)?;
        Some((found.0, found.1, name))
    })
}
