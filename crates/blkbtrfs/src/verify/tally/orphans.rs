//! Inodes without names, whose removal may have begun.
//!
//! The kernel removes the items of a large file or folder from the last one backwards, in several
//! transactions. It updates the inode in none of them, so the inode still counts the bytes of
//! extents that are gone. A removed folder may have places of names whose files are gone. Until the
//! inode itself is removed, an orphan item names it, and the next mount continues.

use super::hasher::Hasher;
use super::promises::{FILE, FOLDER, InodeItem, SYMLINK, promises, stored_bytes};
use crate::backref::file_extent::counted_bytes;
use crate::error::Result;
use crate::tree::key::kind;
use crate::tree::{Cursor, Key, TreeRoot, object};
use crate::verify::job::Job;

/// Returns whether a tree has an orphan item of an inode.
///
/// # Errors
///
/// Fails if a block is lost.
pub(super) fn has(job: &Job<'_>, (tree, root): (u64, TreeRoot), inode: u64) -> Result<bool> {
    let key = Key::new(object::ORPHANS, kind::ORPHAN, inode);
    let cursor = Cursor::seek(job.filesystem, tree, root, key)?;
    Ok(cursor.item().is_some_and(|(found, _)| found == key))
}

/// Returns the part of a tree's sum that is due to inodes in removal, and stops when nothing is
/// `left`. An item takes one from it, an inode [`SEEK`].
///
/// # Errors
///
/// Fails if a block is lost.
pub(super) fn sum(
    job: &Job<'_>,
    hasher: &Hasher,
    (tree, root): (u64, TreeRoot),
    left: &mut u64,
) -> Result<u64> {
    let first = Key::new(object::ORPHANS, kind::ORPHAN, 0);
    let mut orphans = Cursor::seek(job.filesystem, tree, root, first)?;
    let mut sum = 0u64;
    while let Some((key, _)) = orphans.item().filter(|_| *left > 0) {
        if (key.object, key.kind) != (object::ORPHANS, kind::ORPHAN) {
            break;
        }
        let inode = Cursor::seek(job.filesystem, tree, root, Key::new(key.offset, kind::INODE, 0))?;
        sum = sum.wrapping_add(of_inode(hasher, inode, key.offset, left)?);
        orphans.advance()?;
    }
    Ok(sum)
}

/// Returns the part of the sum that is due to an inode. `cursor` is at its first item.
fn of_inode(hasher: &Hasher, mut cursor: Cursor<'_>, inode: u64, left: &mut u64) -> Result<u64> {
    *left = left.saturating_sub(SEEK);
    let first = cursor.item().filter(|(key, _)| *key == Key::new(inode, kind::INODE, 0));
    let Some(said) = first.and_then(|(_, bytes)| InodeItem::parse(bytes)) else { return Ok(0) };
    if said.links != 0 || !matches!(said.format, FILE | FOLDER | SYMLINK) {
        return Ok(0);
    }
    let (mut stored, mut places) = (0u64, 0u64);
    while let Some((key, bytes)) = cursor.item().filter(|(key, _)| key.object == inode) {
        *left = left.saturating_sub(1);
        match key.kind {
            kind::FILE_EXTENT => {
                stored = stored.saturating_add(counted_bytes(bytes).unwrap_or_default());
            }
            kind::DIR_INDEX => {
                places = places.wrapping_add(promises(hasher, key, bytes).unwrap_or_default());
            }
            _ => {}
        }
        if *left == 0 {
            break;
        }
        cursor.advance()?;
    }
    // Extents are only ever removed.
    Ok(match said.stored.checked_sub(stored) {
        Some(gone) if said.format != FOLDER => stored_bytes(hasher, inode).wrapping_mul(gone),
        _ => places,
    })
}

/// Number of items that take about as long to read as one inode takes to find.
const SEEK: u64 = 64;
