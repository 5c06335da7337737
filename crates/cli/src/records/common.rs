//! Parts of several objects.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use blkfs::{Content, Holder};
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
    /// What bytes belong to.
    pub struct Owner<'a> as "Owners" {
        /// `file` (content), `metadata` (of a file system, or a partition table), `journal`, `free` (free space) or `unknown`
        pub kind: &'static str,
        /// name of the structure of metadata, such as `directory`, `inode table` or `GPT partition table`; null if there is none
        pub structure: Option<&'static str>,
        /// paths of the file or directory, several if it has hard links; empty if it has none, or belongs to none
        pub names: Vec<Named<'a>>,
        /// number of the inode, or of the file record, that they belong to; null if there is none
        pub object: Option<u64>,
        /// offset of the first byte in the content of the file; null if there is none
        pub file_offset: Option<u64>,
    }
}

record! {
    /// What blocks hold.
    pub struct Files<'a> {
        /// whether blocks are in the metadata or the journal of a file system of the image, or in the partition table
        pub metadata: bool,
        /// files of a file system of the image with data in the blocks, at most 16 with all their names
        pub files: Vec<Named<'a>>,
        /// false if there may be more files than are listed: some of the blocks are in no file system that is read, or in one that
        /// is damaged, the others did not fit, of btrfs the blocks are more than 256 KiB, of which the first are looked up, or more than
        /// 1 GiB was looked up before, there is no image, only two maps, or the blocks are `unknown` or `unverified`
        pub files_complete: bool,
        /// what the blocks belong to, at most 16
        pub owners: Vec<Owner<'a>>,
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

impl<'a> Owner<'a> {
    /// Describes what bytes belong to.
    pub fn new(holder: &'a Holder) -> Self {
        let named = |path: &'a Vec<u8>| Named { name: Name::new(OsStr::from_bytes(path)) };
        Self {
            kind: holder.usage.name(),
            structure: holder.structure,
            names: holder.paths.iter().map(named).collect(),
            object: holder.object,
            file_offset: holder.offset,
        }
    }
}

impl<'a> Files<'a> {
    /// Describes what was found in blocks.
    pub fn new(content: &'a Content) -> Self {
        let named = |path: &'a [u8]| Named { name: Name::new(OsStr::from_bytes(path)) };
        Self {
            metadata: content.is_metadata(),
            files: content.files().map(named).collect(),
            files_complete: !content.is_partial,
            owners: content.holders.iter().map(Owner::new).collect(),
        }
    }
}
