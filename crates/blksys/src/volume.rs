//! Where the bytes of files are on the volume of their file system.

/// A file system on which files share extents, and never write to a shared one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// The btrfs with this id.
    Btrfs([u8; 16]),
    /// The XFS of the file's device.
    Xfs,
}

/// The reply of the system to a query of extents, in which nothing is trusted.
#[derive(Debug)]
pub struct Reply {
    /// The extents, in the order in which the system returned them.
    pub extents: Vec<VolumeExtent>,
    /// Whether more extents may follow.
    pub is_full: bool,
}

/// An extent of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct VolumeExtent {
    /// Offset in the file, in bytes.
    pub logical: u64,
    /// Address on the volume, in bytes.
    pub physical: u64,
    /// Length in bytes.
    pub length: u64,
    /// `FIEMAP_EXTENT_*` of Linux.
    pub flags: u32,
}
