//! Whether two names are those of one file.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::{Image, Member, MemberFile, is_layout, split_member};

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
        files.map(MemberFile::name).any(|name| match split_member(name) {
            // A disk of an appliance is in its file, or in one of its blobs.
            Some((appliance, _)) if is_layout(appliance) => self.is_blob_of(appliance),
            Some((appliance, _)) => Self::of(appliance) == Some(self),
            None => Self::of(name) == Some(self),
        })
    }

    /// Returns whether this is a blob of the OCI image layout in a folder.
    fn is_blob_of(self, layout: &Path) -> bool {
        let files = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        let mut algorithms = files(&layout.join("blobs"));
        algorithms
            .any(|folder| files(&folder.path()).any(|blob| Self::of(&blob.path()) == Some(self)))
    }
}
