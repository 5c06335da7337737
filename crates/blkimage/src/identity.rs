//! Identities of files and of the volumes that hold them.

use crate::sys::Stamp;

/// Identifies a file of this host and the state of its content. Equal for all descriptors of one file,
/// as long as the file does not change.
///
/// Contains the time stamps, in addition to device and inode, because some file systems give the files
/// of a snapshot the numbers of the originals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(Stamp);

/// Identifies a mounted file system of this host that reports which extents its files share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VolumeId(Volume);

/// A file system by what is the same for all of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Volume {
    /// The id of the file system. Each of its subvolumes has another device number, and the addresses of all belong to
    /// the file system.
    Btrfs([u8; 16]),
    /// The device number.
    Xfs(u64),
}

impl FileId {
    /// Creates the identity of the file with this stamp.
    pub(crate) fn new(stamp: Stamp) -> Self {
        Self(stamp)
    }
}

impl From<Volume> for VolumeId {
    fn from(volume: Volume) -> Self {
        Self(volume)
    }
}
