//! Keys, and the types of items.

use std::fmt;

use super::object;
use crate::bytes::{u8_at, u64_at};

/// Key of an item. Items are sorted by the fields in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) object: u64,
    pub(crate) kind: u8,
    pub(crate) offset: u64,
}

impl Key {
    /// Size of a key in bytes.
    pub(crate) const SIZE: usize = 17;

    pub(crate) const fn new(object: u64, kind: u8, offset: u64) -> Self {
        Self { object, kind, offset }
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self { object: u64_at(bytes, 0)?, kind: u8_at(bytes, 8)?, offset: u64_at(bytes, 9)? })
    }
}

/// Formats the key as in btrfs-progs.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object, kind, offset } = *self;
        match kind::NAMES.iter().find(|(known, _)| *known == kind) {
            Some((_, name)) => write!(f, "({} {name} {offset})", object as i64),
            None => write!(f, "({} {kind} {offset})", object as i64),
        }
    }
}

/// Returns whether items with such a key may be in the leaves of a tree.
pub(crate) fn may_be_in(tree: u64, key: Key) -> bool {
    let Key { object, kind, .. } = key;
    match tree {
        object::ROOT_TREE => {
            kind::OF_ROOT_TREE.contains(&kind) || kind == 0 && object == object::FREE_SPACE
        }
        object::EXTENT_TREE => kind::OF_EXTENT_TREE.contains(&kind),
        object::CHUNK_TREE => matches!(kind, kind::DEVICE | kind::CHUNK),
        object::DEVICE_TREE => {
            matches!(kind, kind::DEV_EXTENT | kind::PERSISTENT | kind::DEV_REPLACE)
        }
        object::CHECKSUM_TREE => kind == kind::CHECKSUM && object == object::CHECKSUMS,
        object::QUOTA_TREE => kind::OF_QUOTA_TREE.contains(&kind),
        // mkfs.btrfs 4.16 to 4.19 gives it a root folder, which the kernel never reads.
        object::UUID_TREE if matches!(kind, kind::INODE | kind::INODE_REF) => {
            object == object::ROOT_FOLDER
        }
        object::UUID_TREE => matches!(kind, kind::UUID_SUBVOLUME | kind::UUID_RECEIVED),
        object::FREE_SPACE_TREE => matches!(
            kind,
            kind::FREE_SPACE_INFO | kind::FREE_SPACE_EXTENT | kind::FREE_SPACE_BITMAP
        ),
        object::BLOCK_GROUP_TREE => kind == kind::BLOCK_GROUP,
        object::TREE_LOG => kind::OF_FILES.contains(&kind) || kind::OF_LOGS.contains(&kind),
        object::TREE_RELOCATION | object::DATA_RELOCATION => kind::OF_FILES.contains(&kind),
        _ if object::is_file_tree(tree) => kind::OF_FILES.contains(&kind),
        _ => true,
    }
}

/// Types of items.
pub(crate) mod kind {
    pub(crate) const INODE: u8 = 1;
    pub(crate) const INODE_REF: u8 = 12;
    pub(crate) const INODE_EXTREF: u8 = 13;
    pub(crate) const XATTR: u8 = 24;
    const VERITY_DESCRIPTOR: u8 = 36;
    const VERITY_TREE: u8 = 37;
    pub(crate) const ORPHAN: u8 = 48;
    const DIR_LOG_ITEM: u8 = 60;
    const DIR_LOG_INDEX: u8 = 72;
    pub(crate) const DIR_ITEM: u8 = 84;
    pub(crate) const DIR_INDEX: u8 = 96;
    pub(crate) const FILE_EXTENT: u8 = 108;
    pub(crate) const CHECKSUM: u8 = 128;
    pub(crate) const ROOT: u8 = 132;
    pub(crate) const ROOT_BACKREF: u8 = 144;
    pub(crate) const ROOT_REF: u8 = 156;
    pub(crate) const EXTENT: u8 = 168;
    pub(crate) const METADATA: u8 = 169;
    pub(crate) const EXTENT_OWNER: u8 = 172;
    pub(crate) const TREE_BLOCK_REF: u8 = 176;
    pub(crate) const DATA_REF: u8 = 178;
    pub(crate) const SHARED_BLOCK_REF: u8 = 182;
    pub(crate) const SHARED_DATA_REF: u8 = 184;
    pub(crate) const BLOCK_GROUP: u8 = 192;
    pub(crate) const FREE_SPACE_INFO: u8 = 198;
    pub(crate) const FREE_SPACE_EXTENT: u8 = 199;
    pub(crate) const FREE_SPACE_BITMAP: u8 = 200;
    pub(crate) const DEV_EXTENT: u8 = 204;
    pub(crate) const DEVICE: u8 = 216;
    pub(crate) const CHUNK: u8 = 228;
    pub(crate) const QGROUP_STATUS: u8 = 240;
    pub(crate) const QGROUP_INFO: u8 = 242;
    pub(crate) const QGROUP_LIMIT: u8 = 244;
    pub(crate) const QGROUP_RELATION: u8 = 246;
    const TEMPORARY: u8 = 248;
    pub(crate) const PERSISTENT: u8 = 249;
    pub(crate) const DEV_REPLACE: u8 = 250;
    pub(crate) const UUID_SUBVOLUME: u8 = 251;
    pub(crate) const UUID_RECEIVED: u8 = 252;

    pub(super) const OF_ROOT_TREE: [u8; 10] = [
        INODE,
        INODE_REF,
        ORPHAN,
        DIR_ITEM,
        DIR_INDEX,
        FILE_EXTENT,
        ROOT,
        ROOT_BACKREF,
        ROOT_REF,
        TEMPORARY,
    ];
    pub(super) const OF_EXTENT_TREE: [u8; 7] = [
        EXTENT,
        METADATA,
        TREE_BLOCK_REF,
        DATA_REF,
        SHARED_BLOCK_REF,
        SHARED_DATA_REF,
        BLOCK_GROUP,
    ];
    pub(super) const OF_QUOTA_TREE: [u8; 4] =
        [QGROUP_STATUS, QGROUP_INFO, QGROUP_LIMIT, QGROUP_RELATION];
    pub(super) const OF_FILES: [u8; 10] = [
        INODE,
        INODE_REF,
        INODE_EXTREF,
        XATTR,
        VERITY_DESCRIPTOR,
        VERITY_TREE,
        ORPHAN,
        DIR_ITEM,
        DIR_INDEX,
        FILE_EXTENT,
    ];
    pub(super) const OF_LOGS: [u8; 4] = [DIR_LOG_ITEM, DIR_LOG_INDEX, CHECKSUM, ROOT];

    pub(super) const NAMES: [(u8, &str); 39] = [
        (INODE, "INODE_ITEM"),
        (INODE_REF, "INODE_REF"),
        (INODE_EXTREF, "INODE_EXTREF"),
        (XATTR, "XATTR_ITEM"),
        (VERITY_DESCRIPTOR, "VERITY_DESC_ITEM"),
        (VERITY_TREE, "VERITY_MERKLE_ITEM"),
        (ORPHAN, "ORPHAN_ITEM"),
        (DIR_LOG_ITEM, "DIR_LOG_ITEM"),
        (DIR_LOG_INDEX, "DIR_LOG_INDEX"),
        (DIR_ITEM, "DIR_ITEM"),
        (DIR_INDEX, "DIR_INDEX"),
        (FILE_EXTENT, "EXTENT_DATA"),
        (CHECKSUM, "EXTENT_CSUM"),
        (ROOT, "ROOT_ITEM"),
        (ROOT_BACKREF, "ROOT_BACKREF"),
        (ROOT_REF, "ROOT_REF"),
        (EXTENT, "EXTENT_ITEM"),
        (METADATA, "METADATA_ITEM"),
        (EXTENT_OWNER, "EXTENT_OWNER_REF"),
        (TREE_BLOCK_REF, "TREE_BLOCK_REF"),
        (DATA_REF, "EXTENT_DATA_REF"),
        (SHARED_BLOCK_REF, "SHARED_BLOCK_REF"),
        (SHARED_DATA_REF, "SHARED_DATA_REF"),
        (BLOCK_GROUP, "BLOCK_GROUP_ITEM"),
        (FREE_SPACE_INFO, "FREE_SPACE_INFO"),
        (FREE_SPACE_EXTENT, "FREE_SPACE_EXTENT"),
        (FREE_SPACE_BITMAP, "FREE_SPACE_BITMAP"),
        (DEV_EXTENT, "DEV_EXTENT"),
        (DEVICE, "DEV_ITEM"),
        (CHUNK, "CHUNK_ITEM"),
        (QGROUP_STATUS, "QGROUP_STATUS"),
        (QGROUP_INFO, "QGROUP_INFO"),
        (QGROUP_LIMIT, "QGROUP_LIMIT"),
        (QGROUP_RELATION, "QGROUP_RELATION"),
        (TEMPORARY, "TEMPORARY_ITEM"),
        (PERSISTENT, "PERSISTENT_ITEM"),
        (DEV_REPLACE, "DEV_REPLACE"),
        (UUID_SUBVOLUME, "UUID_KEY_SUBVOL"),
        (UUID_RECEIVED, "UUID_KEY_RECEIVED_SUBVOL"),
    ];
}
