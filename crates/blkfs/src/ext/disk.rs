//! What is known of a file system before a walk.

use super::blocks::Blocks;
use super::checksum::Sums;
use super::journal::Journal;
use super::superblock::Superblock;

/// A file system of the family.
pub(super) struct Ext {
    pub superblock: Superblock,
    pub sums: Sums,
    pub blocks: Blocks,
    pub journal: Journal,
}
