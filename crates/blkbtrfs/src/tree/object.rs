//! Numbers of trees and of other well-known objects.

pub(crate) const ROOT_TREE: u64 = 1;
pub(crate) const EXTENT_TREE: u64 = 2;
pub(crate) const CHUNK_TREE: u64 = 3;
pub(crate) const DEVICE_TREE: u64 = 4;
pub(crate) const FS_TREE: u64 = 5;
pub(crate) const CHECKSUM_TREE: u64 = 7;
pub(crate) const QUOTA_TREE: u64 = 8;
pub(crate) const UUID_TREE: u64 = 9;
pub(crate) const FREE_SPACE_TREE: u64 = 10;
pub(crate) const BLOCK_GROUP_TREE: u64 = 11;
pub(crate) const TREE_LOG: u64 = -6i64 as u64;
pub(crate) const TREE_RELOCATION: u64 = -8i64 as u64;
pub(crate) const CHECKSUMS: u64 = -10i64 as u64;
pub(crate) const DATA_RELOCATION: u64 = -9i64 as u64;
pub(crate) const ORPHANS: u64 = -5i64 as u64;
pub(crate) const FREE_SPACE: u64 = -11i64 as u64;
pub(crate) const FREE_INODES: u64 = -12i64 as u64;
pub(crate) const DEVICES: u64 = 1;
/// Folder of the root tree, which names the default subvolume.
pub(crate) const ROOT_TREE_FOLDER: u64 = 6;
pub(crate) const CHUNKS: u64 = 256;
/// Root folder of every subvolume.
pub(crate) const ROOT_FOLDER: u64 = 256;

/// Trees that every file system has.
pub(crate) const ALWAYS: [u64; 5] =
    [EXTENT_TREE, DEVICE_TREE, FS_TREE, CHECKSUM_TREE, DATA_RELOCATION];

/// Returns whether a tree belongs to a subvolume.
pub(crate) fn is_file_tree(tree: u64) -> bool {
    tree == FS_TREE || is_file_number(tree)
}

/// Returns whether a tree contains files. Excludes log trees.
pub(crate) fn is_of_files(tree: u64) -> bool {
    is_file_tree(tree) || matches!(tree, DATA_RELOCATION | TREE_RELOCATION)
}

/// Returns whether a number is in the range of inodes and subvolumes.
pub(crate) fn is_file_number(number: u64) -> bool {
    (256..=-256i64 as u64).contains(&number)
}

/// Returns whether a tree always has at least one item.
pub(crate) fn is_never_empty(tree: u64) -> bool {
    matches!(tree, ROOT_TREE | EXTENT_TREE | CHUNK_TREE | DEVICE_TREE | FS_TREE | DATA_RELOCATION)
}

/// Returns whether a tree may be partially removed: a subvolume or a relocation tree.
pub(crate) fn is_removable(tree: u64) -> bool {
    is_file_tree(tree) && tree != FS_TREE || tree == TREE_RELOCATION
}

/// Returns whether blocks of a tree may have several parents. Blocks of file trees have one in each
/// snapshot, and every tree with snapshots may have relocation trees.
pub(crate) fn is_shareable(tree: u64) -> bool {
    is_file_tree(tree) || matches!(tree, TREE_RELOCATION | DATA_RELOCATION)
}

/// Returns the name of a tree.
pub fn tree_name(tree: u64) -> &'static str {
    match tree {
        ROOT_TREE => "root tree",
        EXTENT_TREE => "extent tree",
        CHUNK_TREE => "chunk tree",
        DEVICE_TREE => "device tree",
        FS_TREE => "file tree",
        CHECKSUM_TREE => "checksum tree",
        QUOTA_TREE => "quota tree",
        UUID_TREE => "UUID tree",
        FREE_SPACE_TREE => "free space tree",
        BLOCK_GROUP_TREE => "block group tree",
        TREE_LOG => "log tree",
        TREE_RELOCATION => "relocation tree",
        DATA_RELOCATION => "data relocation tree",
        _ if is_file_tree(tree) => "file tree",
        _ => "unknown tree",
    }
}
