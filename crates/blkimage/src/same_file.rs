//! Whether two names refer to one file.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::container::files_of;
use crate::{Image, Member, MemberFile};

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
        let names = image.chain().iter().flat_map(Member::files).map(MemberFile::name);
        names.flat_map(files_of).any(|file| Self::of(&file) == Some(self))
    }
}
