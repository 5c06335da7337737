//! Kinds of file systems.

use std::fmt;

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// ext2: no journal, no extents.
    Ext2,
    /// ext3: ext2 with a journal.
    Ext3,
    /// ext4.
    Ext4,
    /// The external journal of an ext3 or ext4.
    Jbd,
    /// XFS.
    Xfs,
    /// NTFS.
    Ntfs,
    /// FAT with entries of 12 bits.
    Fat12,
    /// FAT with entries of 16 bits.
    Fat16,
    /// FAT with entries of 32 bits.
    Fat32,
    /// exFAT.
    ExFat,
}

impl Kind {
    /// Returns the name as `blkid` prints it, with the width of the entries for FAT.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Jbd => "jbd",
            Self::Xfs => "xfs",
            Self::Ntfs => "ntfs",
            Self::Fat12 => "fat12",
            Self::Fat16 => "fat16",
            Self::Fat32 => "fat32",
            Self::ExFat => "exfat",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
