//! Rules for an item by itself and relative to its predecessor.
//!
//! They are the rules of the kernel's tree checker, which refuses a leaf that breaks one, and the rules of
//! `btrfs check` that need only one leaf. [`crate::verify`] compares items of several leaves or
//! trees with each other. docs/inside/decisions/btrfs-structure.md says why checksums are not enough.

mod checksums;
mod devices;
mod extents;
mod files;
mod inline;
mod item;
mod roots;
mod space;

pub(crate) use self::extents::FULL;
pub(crate) use self::files::{DIR_HEAD, EXTREF_HEAD, REF_HEAD, kind_of_mode};
pub(crate) use self::item::Rules;
pub(crate) use self::roots::ROOT_REF_HEAD;

use self::item::{Item, Verdict, at_least, exact};
use crate::tree::key::{self, kind};
use crate::tree::{BlockDefect, TreeBlock, object};

impl Rules<'_> {
    /// Checks every item of a leaf of a tree.
    ///
    /// # Errors
    ///
    /// Returns the first item that breaks a rule, because the kernel refuses a leaf as a whole.
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
}
