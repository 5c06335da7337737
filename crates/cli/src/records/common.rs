//! Parts of several objects.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use blkbtrfs::Content;
use blkrecord::{Name, record};
use blksum::Unreadable;

use crate::problem::Problem;

record! {
    /// A name within a list.
    pub struct Named<'a> as "Names" {
        /// the name as text
        pub name: Name<'a>,
    }
}

record! {
    /// Why blocks cannot be read.
    pub struct Reason<'a> {
        /// offset of the block
        pub offset: u64,
        /// name of the image on the command line
        pub name: Name<'a>,
        /// the reason, with the place in the file if it is known
        pub reason: String,
    }
}

record! {
    /// What blocks hold.
    pub struct Files<'a> {
        /// whether blocks are in the metadata of a btrfs file system of the image
        pub metadata: bool,
        /// files of a btrfs file system of the image with data in the blocks, at most 16
        pub files: Vec<Named<'a>>,
        /// false if there may be more files than are listed: no btrfs file system has the first block, the others did not fit,
        /// the blocks are more than 256 KiB, of which the first are looked up, more than 1 GiB was looked up before, there is no
        /// image, only two maps, or the blocks are `unknown` or `unverified`
        pub files_complete: bool,
    }
}

impl<'a> Reason<'a> {
    /// Describes what cannot be read, of the image that `name` returns for it.
    pub fn all(unreadable: &[Unreadable], name: impl Fn(&Unreadable) -> &'a OsStr) -> Vec<Self> {
        let reason = |it: &Unreadable| Self {
            offset: it.offset,
            name: Name::new(name(it)),
            reason: Problem::of_image(&it.error, name(it)).text(),
        };
        unreadable.iter().map(reason).collect()
    }
}

impl<'a> Files<'a> {
    /// Describes what was found in blocks.
    pub fn new(content: &'a Content) -> Self {
        let named = |path: &'a Vec<u8>| Named { name: Name::new(OsStr::from_bytes(path)) };
        Self {
            metadata: content.is_metadata,
            files: content.files.iter().map(named).collect(),
            files_complete: !content.is_partial,
        }
    }
}
