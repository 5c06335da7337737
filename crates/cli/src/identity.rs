//! Whether two names are those of one file.

use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use blkimage::Image;

/// Whether two names are those of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The device and the inode.
    File(u64, u64),
    /// The number of a block device, which may have several nodes.
    Device(u64),
}

impl Identity {
    pub fn new(metadata: &Metadata) -> Self {
        match metadata.file_type().is_block_device() {
            true => Self::Device(metadata.rdev()),
            false => Self::File(metadata.dev(), metadata.ino()),
        }
    }

    /// Returns whether this is a file of the image.
    pub fn is_in(self, image: &Image) -> bool {
        let is_same = |name: &Path| std::fs::metadata(name).is_ok_and(|it| Self::new(&it) == self);
        let files = image.chain().iter().flat_map(blkimage::Member::files);
        files.map(blkimage::MemberFile::name).any(is_same)
    }
}
