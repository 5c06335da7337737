//! The rules that an item obeys by itself and beside the one before it.
//!
//! They are those by which the kernel refuses a leaf (its tree checker), and a few of `btrfs check`
//! that one leaf is enough for. What several leaves or trees say of one thing is compared in
//! [`crate::verify`].

mod checksums;
mod devices;
mod extents;
mod files;
mod inline;
mod roots;
mod space;

pub(crate) use self::extents::FULL;
pub(crate) use self::files::{DIR_HEAD, EXTREF_HEAD, REF_HEAD, kind_of_mode};
pub(crate) use self::roots::ROOT_REF_HEAD;

use std::fmt::Display;

use crate::chunk::ChunkMap;
use crate::superblock::Superblock;
use crate::tree::key::{self, kind};
use crate::tree::{BlockDefect, Key, TreeBlock, object};

/// What the rules depend on.
pub(crate) struct Rules<'a> {
    superblock: &'a Superblock,
    chunks: &'a ChunkMap,
    checksum_size: usize,
}

/// An item and what stands before it in its leaf.
struct Item<'a> {
    key: Key,
    bytes: &'a [u8],
    before: Option<(Key, &'a [u8])>,
    /// Tree that its leaf was reached from.
    tree: u64,
}

/// The reason that an item is refused for.
type Verdict = Result<(), String>;

impl<'a> Rules<'a> {
    pub(crate) fn new(
        superblock: &'a Superblock,
        chunks: &'a ChunkMap,
        checksum_size: usize,
    ) -> Self {
        Self { superblock, chunks, checksum_size }
    }

    /// Checks every item of a leaf of a tree.
    ///
    /// # Errors
    ///
    /// Returns the first item that breaks a rule: the kernel refuses a leaf as a whole.
    pub(crate) fn check(&self, leaf: &TreeBlock, tree: u64) -> Result<(), BlockDefect> {
        if leaf.count() == 0 && object::is_never_empty(tree) {
            let reason = format!("a leaf of the {} is empty", object::tree_name(tree));
            return Err(BlockDefect::Structure(reason));
        }
        let mut before = None;
        for (slot, (key, bytes)) in leaf.items().enumerate() {
            let item = Item { key, bytes, before, tree };
            self.check_item(&item).map_err(|reason| BlockDefect::Item {
                slot: slot as u32,
                key: key.to_string(),
                reason,
            })?;
            before = Some((key, bytes));
        }
        Ok(())
    }

    fn check_item(&self, item: &Item<'_>) -> Verdict {
        let key = item.key;
        if !self.superblock.has_unknown_features() && !key::may_be_in(item.tree, key) {
            return Err(format!("no such item belongs into the {}", object::tree_name(item.tree)));
        }
        match key.kind {
            kind::INODE => files::inode(self, item),
            kind::INODE_REF => files::inode_ref(item),
            kind::INODE_EXTREF => files::inode_extref(item),
            kind::XATTR | kind::DIR_ITEM | kind::DIR_INDEX => files::dir_item(item),
            kind::FILE_EXTENT => files::file_extent(self, item),
            kind::CHECKSUM => checksums::checksum(self, item),
            kind::ROOT => roots::root(self, item),
            kind::ROOT_REF | kind::ROOT_BACKREF => roots::root_ref(item),
            kind::EXTENT | kind::METADATA => extents::extent(self, item),
            kind::TREE_BLOCK_REF | kind::SHARED_BLOCK_REF | kind::SHARED_DATA_REF => {
                extents::simple_ref(self, item)
            }
            kind::DATA_REF => extents::data_ref(self, item),
            kind::BLOCK_GROUP => space::block_group(self, item),
            kind::FREE_SPACE_INFO | kind::FREE_SPACE_EXTENT | kind::FREE_SPACE_BITMAP => {
                space::free_space(self, item)
            }
            kind::CHUNK => devices::chunk(self, item),
            kind::DEVICE => devices::device(self, item),
            kind::DEV_EXTENT => devices::dev_extent(self, item),
            kind::UUID_SUBVOLUME | kind::UUID_RECEIVED => roots::uuid(item),
            kind::QGROUP_STATUS => at_least(item.bytes, 32),
            kind::QGROUP_INFO | kind::QGROUP_LIMIT => exact(item.bytes, 40),
            kind::ORPHAN | kind::QGROUP_RELATION => exact(item.bytes, 0),
            _ => Ok(()),
        }
    }

    /// Whether `address` is one where a sector begins.
    fn is_aligned(&self, address: u64) -> bool {
        address.is_multiple_of(self.superblock.sector_size.into())
    }

    /// Fails if `address` is not one where a sector begins.
    fn aligned(&self, what: &str, address: u64) -> Verdict {
        if self.is_aligned(address) {
            return Ok(());
        }
        Err(format!("{what} {address} is not at a sector of {}", self.superblock.sector_size))
    }

    /// Fails if a transaction is one that there cannot be yet. A log belongs to the one that was not
    /// committed.
    fn generation(&self, what: &str, generation: u64) -> Verdict {
        let most = self.superblock.generation.saturating_add(1);
        at_most(what, generation, most)
    }

    /// Fails if no chunk holds a range.
    fn in_chunk(&self, what: &str, start: u64, length: u64) -> Verdict {
        match self.chunks.find_range(start, length.max(1)) {
            Some(_) => Ok(()),
            None => Err(format!("{what} of {length} bytes at {start} is in no chunk")),
        }
    }
}

fn exact(bytes: &[u8], size: usize) -> Verdict {
    match bytes.len() {
        found if found == size => Ok(()),
        found => Err(format!("has {found} bytes, expected {size}")),
    }
}

fn at_least(bytes: &[u8], size: usize) -> Verdict {
    match bytes.len() {
        found if found >= size => Ok(()),
        found => Err(format!("has {found} bytes, expected at least {size}")),
    }
}

fn at_most(what: &str, found: u64, most: u64) -> Verdict {
    if found <= most { Ok(()) } else { Err(format!("{what} is {found}, at most {most}")) }
}

fn expect<T: PartialEq + Display>(what: &str, found: &T, expected: &T) -> Verdict {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found}, expected {expected}")) }
}

/// A field that [`exact`] or [`at_least`] has made sure of.
fn field<T>(value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| "is cut off".to_owned())
}
