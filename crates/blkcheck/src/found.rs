//! A layer that was found on a disk.

use blkfs::volumes::luks::Luks;
use blkfs::volumes::lvm::PhysicalVolume;
use blkimage::partition::{Details, Gpt};

use crate::finding::{Finding, FindingKind};
use crate::place::Place;
use crate::window::Window;

/// A layer and its part of the disk.
pub(crate) struct Layer {
    pub place: Place,
    pub window: Window,
    pub found: Found,
    /// What its partition says of it.
    pub details: Option<Details>,
    /// Number of bytes of its partition past the end of the image.
    pub missing: u64,
    /// Place of the hash tree of its content.
    pub tree: Option<Place>,
    pub remarks: Vec<String>,
}

impl Layer {
    /// Returns the finding for a partition of which bytes are past the end of the image.
    pub fn cut_off(&self) -> Finding {
        let (size, missing) = (self.window.size(), self.missing);
        let reason = format!("the image ends after {size} bytes of it: {missing} are missing");
        Finding::new(FindingKind::Unreadable, "partition", size, reason)
    }
}

/// What a part of a disk has, by its first bytes.
pub(crate) enum Found {
    Gpt(Box<Gpt>),
    /// A master boot record, and the reason why some of its partitions are unknown.
    Mbr(Option<String>),
    Luks(Box<Luks>),
    Lvm(Box<PhysicalVolume>),
    /// The superblock of dm-verity.
    Verity(Option<Data>),
    /// The first device of a btrfs.
    Btrfs(Option<blkbtrfs::Group>),
    /// Another device of a btrfs.
    BtrfsDevice(Place),
    /// A part of some kind that is not read.
    Skipped(&'static str, Finding),
    /// Anything else: a file system, or unknown bytes.
    Other,
}

/// The data of a hash tree.
pub(crate) struct Data {
    pub place: Place,
    pub window: Window,
    /// The root hash, if it is in the image.
    pub root: Option<Root>,
}

/// A root hash in the image.
pub(crate) struct Root {
    pub digest: Vec<u8>,
    /// Where it is.
    pub source: &'static str,
}
