//! Tree blocks: a header, and items (leaves) or pointers to other blocks (nodes).
//!
//! [`TreeBlock::new`] checks the whole block once, so that users of a [`TreeBlock`] can rely on its
//! bounds.

use std::fmt;
use std::sync::Arc;

use super::reference::{ANY_TREE, Expected, MAX_LEVEL, Parent};
use super::{Key, object};
use crate::bytes::{array_at, u8_at, u32_at, u64_at};
use crate::checksum::{Checksum, MAX_SIZE};
use crate::uuid::Uuid;

/// A block with a valid checksum, header and structure.
#[derive(Clone, Debug)]
pub(crate) struct TreeBlock {
    bytes: Arc<[u8]>,
}

/// Defect of a tree block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockDefect {
    /// The stored checksum does not match the content.
    Checksum {
        /// Stored checksum.
        expected: Checksum,
        /// Checksum of the content.
        computed: Checksum,
    },
    /// Belongs to another address.
    Address(u64),
    /// Belongs to another file system.
    Fsid(Uuid),
    /// Belongs to another chunk tree.
    ChunkTree(Uuid),
    /// Is older or newer than its parent says, because a write was lost.
    Generation {
        /// Generation in the reference.
        expected: u64,
        /// Generation in the block.
        found: u64,
    },
    /// Has another level than its parent says.
    Level {
        /// Level in the reference.
        expected: u8,
        /// Level in the block.
        found: u8,
    },
    /// Belongs to another tree.
    Owner {
        /// Tree of the reference.
        expected: u64,
        /// Tree in the block.
        found: u64,
    },
    /// Its first key differs from the key in its parent.
    FirstKey,
    /// Its last key is not below the next key of its parent.
    LastKey,
    /// The layout of its items is invalid.
    Structure(String),
    /// One of its items breaks a rule, so the kernel refuses the whole block.
    Item {
        /// Index of the item, from 0.
        slot: u32,
        /// Key of the item, formatted as in btrfs-progs.
        key: String,
        /// Broken rule.
        reason: String,
    },
    /// Differs from another mirror, and both have valid checksums.
    Mirror {
        /// Number of the other mirror, from 1.
        other: u32,
    },
    /// Has several references, although blocks of its tree are never shared.
    Shared,
    /// Is in use in the extent tree, but has no reference.
    Unreached,
    /// The number of references in the extent tree is wrong.
    References,
}

impl BlockDefect {
    /// Returns whether another reference to the same block may be valid.
    pub(crate) fn depends_on_reference(&self) -> bool {
        match self {
            Self::Generation { .. }
            | Self::Level { .. }
            | Self::Owner { .. }
            | Self::FirstKey
            | Self::LastKey
            | Self::Shared => true,
            Self::Checksum { .. }
            | Self::Address(_)
            | Self::Fsid(_)
            | Self::ChunkTree(_)
            | Self::Structure(_)
            | Self::Item { .. }
            | Self::Mirror { .. }
            | Self::Unreached
            | Self::References => false,
        }
    }
}

impl fmt::Display for BlockDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum { expected, computed } => {
                write!(f, "checksum is {computed}, expected {expected}")
            }
            Self::Address(found) => write!(f, "header says that it is the block of {found}"),
            Self::Fsid(found) => write!(f, "header names the file system {found}"),
            Self::ChunkTree(found) => write!(f, "header names the chunk tree {found}"),
            Self::Generation { expected, found } => {
                write!(f, "generation is {found}, expected {expected}")
            }
            Self::Level { expected, found } => write!(f, "level is {found}, expected {expected}"),
            Self::Owner { expected, found } => {
                write!(f, "owner is tree {}, expected {}", *found as i64, *expected as i64)
            }
            Self::FirstKey => f.write_str("first key differs from its parent's"),
            Self::LastKey => f.write_str("last key is not below the next one of its parent"),
            Self::Structure(reason) => f.write_str(reason),
            Self::Item { slot, key, reason } => write!(f, "item {slot} {key}: {reason}"),
            Self::Mirror { other } => {
                write!(f, "differs from mirror {other}, and both have right checksums")
            }
            Self::Shared => f.write_str("another reference leads to it as well"),
            Self::Unreached => f.write_str("is in use, and nothing leads to it"),
            Self::References => {
                f.write_str("the extent tree counts other references to tree blocks than there are")
            }
        }
    }
}

/// Fields that the tree blocks of a file system share.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) fsid: Uuid,
    /// UUIDs of seeds, which their blocks keep.
    pub(crate) seeds: Vec<Uuid>,
    /// Unknown until the root of the chunk tree is read.
    pub(crate) chunk_tree: Option<Uuid>,
    pub(crate) sector_size: u32,
}

impl TreeBlock {
    /// Creates a block from `bytes`, whose checksum is valid, if they are the expected block.
    pub(crate) fn new(
        bytes: &[u8],
        expected: &Expected,
        identity: &Identity,
    ) -> Result<Self, BlockDefect> {
        check(bytes, expected, identity)?;
        let block = Self { bytes: bytes.into() };
        if block.ends_below(expected.end) { Ok(block) } else { Err(BlockDefect::LastKey) }
    }

    /// Returns whether a valid block also matches another reference.
    pub(crate) fn is(&self, expected: &Expected) -> bool {
        let generation = u64_at(&self.bytes, GENERATION);
        self.level() == expected.level
            && (expected.generation.is_none() || expected.generation == generation)
            && (expected.first_key.is_none() || expected.first_key == self.key(0))
            && self.ends_below(expected.end)
            && may_own(expected, self.owner())
    }

    /// Returns whether all keys are below `end`.
    pub(crate) fn ends_below(&self, end: Option<Key>) -> bool {
        let last = self.count().checked_sub(1).and_then(|index| self.key(index));
        end.is_none_or(|end| last.is_none_or(|last| last < end))
    }

    /// Returns the bytes that the checksum covers.
    pub(crate) fn content(&self) -> &[u8] {
        &self.bytes[MAX_SIZE..]
    }

    pub(crate) fn level(&self) -> u8 {
        self.bytes[LEVEL]
    }

    pub(crate) fn logical(&self) -> u64 {
        u64_at(&self.bytes, ADDRESS).unwrap_or_default()
    }

    pub(crate) fn count(&self) -> usize {
        u32_at(&self.bytes, COUNT).unwrap_or_default() as usize
    }

    pub(crate) fn owner(&self) -> u64 {
        u64_at(&self.bytes, OWNER).unwrap_or_default()
    }

    pub(crate) fn chunk_tree_uuid(&self) -> Uuid {
        Uuid(array_at(&self.bytes, CHUNK_TREE_UUID).unwrap_or_default())
    }

    /// Returns the key of an item or pointer.
    pub(crate) fn key(&self, index: usize) -> Option<Key> {
        entry(&self.bytes, index).and_then(Key::parse)
    }

    /// Returns an item of a leaf.
    pub(crate) fn item(&self, index: usize) -> Option<(Key, &[u8])> {
        if self.level() > 0 || index >= self.count() {
            return None;
        }
        let entry = entry(&self.bytes, index)?;
        let start = HEADER + u32_at(entry, Key::SIZE)? as usize;
        let length = u32_at(entry, Key::SIZE + 4)? as usize;
        Some((Key::parse(entry)?, self.bytes.get(start..)?.get(..length)?))
    }

    /// Returns the items of a leaf.
    pub(crate) fn items(&self) -> impl Iterator<Item = (Key, &[u8])> {
        (0..self.count()).map_while(|index| self.item(index))
    }

    /// Returns the reference in a pointer of a node.
    pub(crate) fn child(&self, index: usize, within: &Expected) -> Option<Expected> {
        if self.level() == 0 || index >= self.count() {
            return None;
        }
        let entry = entry(&self.bytes, index)?;
        Some(Expected {
            tree: within.tree,
            logical: u64_at(entry, Key::SIZE)?,
            level: self.level() - 1,
            generation: Some(u64_at(entry, Key::SIZE + 8)?),
            first_key: Key::parse(entry),
            end: if index + 1 < self.count() { self.key(index + 1) } else { within.end },
            parent: Some(Parent::Node { logical: self.logical(), slot: index as u32 }),
        })
    }

    /// Returns the index of the last entry whose key is not above `key`.
    pub(crate) fn position(&self, key: Key) -> Option<usize> {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = (low + high) / 2;
            if self.key(middle).is_some_and(|it| it <= key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }
}

/// Returns the head of an item, or a pointer.
fn entry(bytes: &[u8], index: usize) -> Option<&[u8]> {
    let size = if *bytes.get(LEVEL)? == 0 { ITEM } else { POINTER };
    bytes.get(HEADER + index * size..)?.get(..size)
}

fn check(bytes: &[u8], expected: &Expected, identity: &Identity) -> Result<(), BlockDefect> {
    let header = || {
        Some((
            Uuid(array_at(bytes, FSID)?),
            u64_at(bytes, ADDRESS)?,
            Uuid(array_at(bytes, CHUNK_TREE_UUID)?),
            u64_at(bytes, GENERATION)?,
            u64_at(bytes, OWNER)?,
            u32_at(bytes, COUNT)?,
            u8_at(bytes, LEVEL)?,
            u64_at(bytes, FLAGS)?,
        ))
    };
    let Some((fsid, address, chunk_tree, generation, owner, count, level, flags)) = header() else {
        return Err(BlockDefect::Structure("is shorter than a header".into()));
    };
    if address != expected.logical {
        return Err(BlockDefect::Address(address));
    }
    let is_of_seed = identity.seeds.contains(&fsid);
    if fsid != identity.fsid && !is_of_seed {
        return Err(BlockDefect::Fsid(fsid));
    }
    if identity.chunk_tree.is_some_and(|known| known != chunk_tree) && !is_of_seed {
        return Err(BlockDefect::ChunkTree(chunk_tree));
    }
    if let Some(expected) = expected.generation.filter(|expected| *expected != generation) {
        return Err(BlockDefect::Generation { expected, found: generation });
    }
    if level != expected.level || level > MAX_LEVEL {
        return Err(BlockDefect::Level { expected: expected.level, found: level });
    }
    if !may_own(expected, owner) {
        return Err(BlockDefect::Owner { expected: expected.tree, found: owner });
    }
    let optional = if object::is_shareable(owner) { RELOCATED } else { 0 };
    if flags & !optional != WRITTEN {
        return Err(BlockDefect::Structure(format!("header has the flags {flags:#x}")));
    }
    if level == 0 {
        check_leaf(bytes, count as usize)?;
    } else {
        check_node(bytes, count as usize, identity.sector_size)?;
    }
    if let Some(key) = expected.first_key
        && entry(bytes, 0).filter(|_| count > 0).and_then(Key::parse) != Some(key)
    {
        return Err(BlockDefect::FirstKey);
    }
    Ok(())
}

/// Returns whether the owner of a block is valid for a reference. Snapshots share blocks, so a
/// block of one file tree may have another as its owner. Roots are never shared, because a snapshot
/// begins with a copy. A relocation tree is a snapshot whose blocks keep their owners, even its
/// root.
fn may_own(expected: &Expected, owner: u64) -> bool {
    let Expected { tree, parent, .. } = *expected;
    let is_root = parent.is_some_and(Parent::is_of_root);
    match tree {
        ANY_TREE => true,
        object::TREE_RELOCATION => object::is_shareable(owner),
        _ if tree == owner => true,
        _ => !is_root && object::is_file_tree(tree) && object::is_file_tree(owner),
    }
}

fn check_leaf(bytes: &[u8], count: usize) -> Result<(), BlockDefect> {
    let fail = |reason: String| Err(BlockDefect::Structure(reason));
    let area = bytes.len() - HEADER;
    if count > area / ITEM {
        return fail(format!("has {count} items, more than fit"));
    }
    let mut before: Option<Key> = None;
    // Data is laid out from the end backwards, without gaps.
    let mut end = area;
    for index in 0..count {
        let fields = |entry| {
            Some((Key::parse(entry)?, u32_at(entry, Key::SIZE)?, u32_at(entry, Key::SIZE + 4)?))
        };
        let Some((key, offset, length)) = entry(bytes, index).and_then(fields) else {
            return fail(format!("item {index} is cut off"));
        };
        if before.is_some_and(|before| before >= key) {
            return fail(format!("item {index} is out of order"));
        }
        if (offset as usize).checked_add(length as usize) != Some(end) {
            return fail(format!("item {index} has {length} bytes at {offset}, not before {end}"));
        }
        end = offset as usize;
        before = Some(key);
    }
    if end < count * ITEM {
        return fail(format!("data of the items reaches into their heads, to {end}"));
    }
    Ok(())
}

fn check_node(bytes: &[u8], count: usize, sector_size: u32) -> Result<(), BlockDefect> {
    let fail = |reason: String| Err(BlockDefect::Structure(reason));
    if count == 0 || count > (bytes.len() - HEADER) / POINTER {
        return fail(format!("has {count} pointers, none or more than fit"));
    }
    let mut before: Option<Key> = None;
    for index in 0..count {
        let fields = |entry| Some((Key::parse(entry)?, u64_at(entry, Key::SIZE)?));
        let Some((key, logical)) = entry(bytes, index).and_then(fields) else {
            return fail(format!("pointer {index} is cut off"));
        };
        if before.is_some_and(|before| before >= key) {
            return fail(format!("pointer {index} is out of order"));
        }
        if !logical.is_multiple_of(sector_size.into()) {
            return fail(format!("pointer {index} leads to {logical}, where no block can be"));
        }
        before = Some(key);
    }
    Ok(())
}

const FSID: usize = 0x20;
const ADDRESS: usize = 0x30;
const FLAGS: usize = 0x38;
const CHUNK_TREE_UUID: usize = 0x40;
const GENERATION: usize = 0x50;
const OWNER: usize = 0x58;
const COUNT: usize = 0x60;
const LEVEL: usize = 0x64;

/// Flags of all blocks: written, and of revision 1, which allows references by tree.
const WRITTEN: u64 = 1 | 1 << 56;

/// Flag of blocks that relocation wrote, which it does only to copies of trees with snapshots.
const RELOCATED: u64 = 1 << 1;

const HEADER: usize = 0x65;
const ITEM: usize = 0x19;
const POINTER: usize = 0x21;
