//! What no checksum protects: extents of data that the checksum tree does not cover.
//!
//! Extents and checksums are both sorted by address, so one pass over both trees side by side finds
//! what is not covered. What kind it is says the file that it belongs to.

use std::hash::RandomState;

use crate::backref::file_extent::FileExtent;
use crate::backref::refs::{DATA, ExtentItem, Reference, ReferenceSum, TREE_BLOCK};
use crate::bytes::u64_at;
use crate::error::{Error, Result};
use crate::filesystem::FileSystem;
use crate::tree::block::ANY_TREE;
use crate::tree::key::kind;
use crate::tree::{Cursor, Expected, Key, object};

/// Bytes of data without checksums, each counted once however many mirrors it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unprotected {
    /// Of files that have none: `nodatasum`, and `nodatacow`, which implies it.
    pub nodatasum: u64,
    /// Space that was reserved for files and not written yet.
    pub preallocated: u64,
    /// Of the file system itself: the cache of free space.
    pub internal: u64,
    /// All other.
    pub other: u64,
}

impl Unprotected {
    /// All of them.
    pub fn total(&self) -> u64 {
        let all = [self.nodatasum, self.preallocated, self.internal, self.other];
        all.into_iter().fold(0, u64::saturating_add)
    }
}

/// Counts, and sums the references to tree blocks that the extent tree has on the way.
///
/// # Errors
///
/// The trees that tell are missing or cannot be read.
pub(crate) fn count(
    filesystem: &FileSystem,
    hasher: &RandomState,
) -> Result<(Unprotected, ReferenceSum)> {
    let mut sum = Unprotected::default();
    let mut references = ReferenceSum::default();
    let mut covered = Covered::new(filesystem)?;
    let mut budget = Budget(FIRST_STEPS);
    let tree = object::EXTENT_TREE;
    let root = filesystem.tree_root(tree)?.ok_or_else(|| no_root(filesystem, tree))?;
    let mut cursor = Cursor::seek(filesystem, tree, root, Key::new(0, 0, 0))?;
    while let Some((key, bytes)) = cursor.item() {
        let item = match key.kind {
            kind::EXTENT | kind::METADATA => Some(extent(key, bytes)?),
            _ => None,
        };
        if let Some(item) = item.as_ref().filter(|it| it.flags & TREE_BLOCK != 0) {
            references.add(hasher, key.object, item.count);
        } else if let Some(item) = item {
            let left = covered.uncovered(key.object, key.object.saturating_add(key.offset))?;
            budget.0 = budget.0.saturating_add(STEPS);
            if left > 0 {
                let mut reference = item.references().next();
                if reference.is_none() {
                    // It is in the item that follows.
                    cursor.advance()?;
                    reference = cursor
                        .item()
                        .filter(|(next, _)| next.object == key.object)
                        .and_then(|(next, bytes)| Reference::parse(next, bytes));
                    classify(filesystem, key, left, reference, &mut budget, &mut sum);
                    continue;
                }
                classify(filesystem, key, left, reference, &mut budget, &mut sum);
            }
        }
        cursor.advance()?;
    }
    Ok((sum, references))
}

/// What an item says of an extent: of data or of a tree block, and of one that is in use.
fn extent(key: Key, bytes: &[u8]) -> Result<ExtentItem<'_>> {
    ExtentItem::parse(key, bytes)
        .filter(|it| match it.flags & (DATA | TREE_BLOCK) {
            DATA => key.kind == kind::EXTENT && it.count > 0,
            TREE_BLOCK => it.count > 0,
            _ => false,
        })
        .ok_or_else(|| Error::corrupt(key.object, "the item about this extent makes no sense"))
}

fn no_root(filesystem: &FileSystem, tree: u64) -> Error {
    let reason = format!("the root tree has no {}", object::tree_name(tree));
    Error::corrupt(filesystem.superblock().root.logical, reason)
}

/// Ranges of the checksum tree, in order.
struct Covered<'a> {
    cursor: Cursor<'a>,
    sector_size: u64,
    checksum_size: u64,
}

impl<'a> Covered<'a> {
    fn new(filesystem: &'a FileSystem) -> Result<Self> {
        let tree = object::CHECKSUM_TREE;
        let first = Key::new(object::CHECKSUMS, kind::CHECKSUM, 0);
        let root = filesystem.tree_root(tree)?.ok_or_else(|| no_root(filesystem, tree))?;
        Ok(Self {
            cursor: Cursor::seek(filesystem, tree, root, first)?,
            sector_size: filesystem.sector_size() as u64,
            checksum_size: filesystem.summer().size() as u64,
        })
    }

    /// Bytes from `start` to `end` without checksums. Ranges are asked for in order.
    fn uncovered(&mut self, start: u64, end: u64) -> Result<u64> {
        let mut left = 0;
        let mut position = start;
        while let Some((key, bytes)) = self.cursor.item() {
            let length = bytes.len() as u64 / self.checksum_size * self.sector_size;
            let (first, last) = (key.offset, key.offset.saturating_add(length));
            if first >= end {
                break;
            }
            left += first.saturating_sub(position);
            position = position.max(last);
            if last > end {
                break;
            }
            self.cursor.advance()?;
        }
        Ok(left + end.saturating_sub(position))
    }
}

/// Adds `left` bytes of an extent to what they are.
fn classify(
    filesystem: &FileSystem,
    extent: Key,
    left: u64,
    reference: Option<Reference>,
    budget: &mut Budget,
    sum: &mut Unprotected,
) {
    // Extents may claim to be of any length. What cannot be found out is other.
    let add = |sum: &mut u64, count| *sum = sum.saturating_add(count);
    let found = match reference {
        Some(Reference::File { tree: object::ROOT_TREE, .. }) => {
            add(&mut sum.internal, left);
            return;
        }
        Some(Reference::File { tree, inode, offset }) => {
            in_file(filesystem, extent.object, (tree, inode, offset), budget).unwrap_or_default()
        }
        Some(Reference::Leaf(leaf)) => in_leaf(filesystem, extent.object, leaf).unwrap_or_default(),
        _ => Found::default(),
    };
    let preallocated = found.preallocated.min(left);
    add(&mut sum.preallocated, preallocated);
    let rest = if found.has_no_checksums { &mut sum.nodatasum } else { &mut sum.other };
    add(rest, left - preallocated);
}

/// Looks at items that are left.
struct Budget(u64);

impl Budget {
    fn step(&mut self) -> bool {
        let is_left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        is_left
    }
}

/// What files say of an extent.
#[derive(Clone, Copy, Default)]
struct Found {
    preallocated: u64,
    has_no_checksums: bool,
}

fn in_file(
    filesystem: &FileSystem,
    extent: u64,
    (tree, inode, offset): (u64, u64, u64),
    budget: &mut Budget,
) -> Result<Found> {
    let mut found = Found::default();
    let Some(root) = filesystem.tree_root(tree)? else { return Ok(found) };
    found.has_no_checksums = is_without(filesystem, tree, inode)?;
    let first = if (offset as i64) < 0 { 0 } else { offset };
    let key = Key::new(inode, kind::FILE_EXTENT, first);
    let mut cursor = Cursor::seek(filesystem, tree, root, key)?;
    while budget.step() {
        let Some((key, bytes)) = cursor.item() else { break };
        if (key.object, key.kind) != (inode, kind::FILE_EXTENT)
            || key.offset.wrapping_sub(offset) > MAX_EXTENT
        {
            break;
        }
        found.add(extent, bytes);
        cursor.advance()?;
    }
    Ok(found)
}

fn in_leaf(filesystem: &FileSystem, extent: u64, leaf: u64) -> Result<Found> {
    let expected = Expected {
        tree: ANY_TREE,
        logical: leaf,
        level: 0,
        generation: None,
        first_key: None,
        parent: None,
    };
    let block = filesystem.block(&expected)?;
    let mut found = Found::default();
    let mut inode = None;
    for (key, bytes) in block.items().filter(|(key, _)| key.kind == kind::FILE_EXTENT) {
        if found.add(extent, bytes) {
            inode = Some(key.object);
        }
    }
    if let Some(inode) = inode {
        found.has_no_checksums = is_without(filesystem, block.owner(), inode)?;
    }
    Ok(found)
}

/// Whether an inode says that its data has no checksums.
fn is_without(filesystem: &FileSystem, tree: u64, inode: u64) -> Result<bool> {
    let Some(root) = filesystem.tree_root(tree)? else { return Ok(false) };
    let key = Key::new(inode, kind::INODE, 0);
    let cursor = Cursor::seek(filesystem, tree, root, key)?;
    let flags = cursor.item().filter(|(found, _)| *found == key);
    let flags = flags.and_then(|(_, bytes)| u64_at(bytes, 64));
    Ok(flags.is_some_and(|flags| flags & NODATASUM != 0))
}

impl Found {
    /// Takes an item; true if it is about the extent.
    fn add(&mut self, extent: u64, bytes: &[u8]) -> bool {
        let Some(file_extent) = FileExtent::parse(bytes).filter(|it| it.extent == extent) else {
            return false;
        };
        if file_extent.is_preallocated {
            self.preallocated = self.preallocated.saturating_add(file_extent.length);
        }
        true
    }
}

const NODATASUM: u64 = 1;

/// Looks at items there may be at first, and more for each extent: real ones need a few, and those
/// of an image that was made to take long do not get more.
const FIRST_STEPS: u64 = 1 << 20;
const STEPS: u64 = 64;

/// The longest extent that there may be.
const MAX_EXTENT: u64 = 1 << 30;
