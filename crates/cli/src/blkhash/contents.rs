//! Partitions and files of btrfs in ranges that do not match.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use blkbtrfs::Content;
use blkimage::Source;

use super::source::shown;

/// The contents of an image, which are read when the first range is looked up.
#[derive(Default)]
pub struct Contents {
    disks: Vec<Arc<dyn Source>>,
    found: OnceCell<blkbtrfs::Contents>,
}

impl Contents {
    /// Prepares to name the files of the first of these disks that has a file system. Without any disk, nothing is known.
    pub fn of(disks: Vec<Arc<dyn Source>>) -> Self {
        Self { disks, found: OnceCell::new() }
    }

    /// Returns what lies in a range.
    pub fn find(&self, offset: u64, length: u64) -> Content {
        if self.disks.is_empty() { Content::unknown() } else { self.found().find(offset, length) }
    }

    /// Returns the partition at `offset`, for a range of which only some unknown bytes matter.
    pub fn partition(&self, offset: u64) -> Content {
        self.found().partition(offset)
    }

    fn found(&self) -> &blkbtrfs::Contents {
        self.found.get_or_init(|| {
            let mut all = self.disks.iter().map(blkbtrfs::Contents::of);
            let first = all.next().unwrap_or_default();
            if first.has_files() {
                return first;
            }
            all.find(blkbtrfs::Contents::has_files).unwrap_or(first)
        })
    }
}

/// Names the files for a line of text. It is empty if there are none.
pub fn text(content: &Content) -> String {
    let names = content.files.iter().map(|path| shown(OsStr::from_bytes(path)));
    let mut names: Vec<_> = names.collect();
    if content.is_metadata {
        names.push("metadata of btrfs".to_owned());
    }
    if content.is_partial && !names.is_empty() {
        names.push("more".to_owned());
    }
    names.join(", ")
}
