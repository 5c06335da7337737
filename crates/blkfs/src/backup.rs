//! Backups of superblocks whose primary one is destroyed.

use std::sync::Arc;

use blkimage::Source;

use crate::kind::Kind;
use crate::volume::Volume;
use crate::{ext, xfs};

/// A backup of a superblock that is intact, and in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// The kind of the file system.
    pub kind: Kind,
    /// Offset of the primary superblock in the volume, in bytes.
    pub primary: u64,
    /// Offset of the backup, in bytes.
    pub offset: u64,
    /// Size of the blocks of the file system in bytes, of which the offset is a multiple.
    pub block_size: u64,
}

impl Backup {
    /// Looks where ext2 to ext4 and XFS have backups by default, in about a hundred places.
    ///
    /// A volume that was formatted anew may still have backups of the file system before. Ask only if nothing else is recognised.
    pub fn find(source: &Arc<dyn Source>) -> Option<Self> {
        let volume = Volume::new(source.clone());
        ext::find_backup(&volume).or_else(|| xfs::find_backup(&volume))
    }
}
