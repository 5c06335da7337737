//! Whether two names are those of one file.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::{Image, Member, MemberFile, split_member};

/// The identity of a file, whatever its names are and whatever it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The device and the inode.
    File(u64, u64),
    /// The number of a block device, which may have several nodes.
    Device(u64),
}

impl Identity {
    /// Returns the identity of the file with these metadata.
    pub fn new(metadata: &Metadata) -> Self {
        match metadata.file_type().is_block_device() {
            true => Self::Device(metadata.rdev()),
            false => Self::File(metadata.dev(), metadata.ino()),
        }
    }

    /// Returns the identity of the file that `path` leads to now. `None` if there is no such file.
    pub fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|metadata| Self::new(&metadata))
    }

    /// Returns whether this is a file of the image.
    pub fn is_in(self, image: &Image) -> bool {
        let files = image.chain().iter().flat_map(Member::files);
        // A disk of an appliance is in its file.
        let file = |name: &Path| split_member(name).map_or(Self::of(name), |(it, _)| Self::of(it));
        files.map(MemberFile::name).any(|name| file(name) == Some(self))
    }
}
