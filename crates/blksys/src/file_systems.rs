//! Properties of file systems.

/// The properties of the file system that holds a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Whether other hosts may write to it without updating this host's page cache.
    pub is_network: bool,
    /// Whether it is local and its files are cached in their own page cache. False for overlayfs, which
    /// caches them in other files, and for ZFS, which has its own cache.
    pub is_disk: bool,
    /// Whether it stores data only in the page cache and in swap.
    pub is_memory: bool,
    /// Whether its files, and their pages, belong to another file system.
    pub is_stacked: bool,
    /// Whether it reports holes correctly for data that is not written back yet.
    pub knows_dirty_holes: bool,
    /// Whether its time stamps have a resolution of two seconds.
    pub counts_even_seconds: bool,
}

impl FileSystem {
    /// A file system of which nothing is known.
    pub const UNKNOWN: Self = Self {
        is_network: false,
        is_disk: false,
        is_memory: false,
        is_stacked: false,
        knows_dirty_holes: false,
        counts_even_seconds: false,
    };
}
