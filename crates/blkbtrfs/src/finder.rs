//! Finds the files in ranges of a device, and what of it is free.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use blkimage::Source;

use crate::backref::Owner;
use crate::devices::Device;
use crate::error::Result;
use crate::filesystem::FileSystem;
use crate::locate::{Located, Locator};
use crate::space::{self, Space};
use crate::superblock::has_magic;

/// The file system on one device.
///
/// The search for files is best effort, and never fails: what is damaged is left out. The number of its steps is
/// limited, for each range and for all of them.
pub struct Finder {
    device: u64,
    filesystem: FileSystem,
    /// Steps taken for all ranges so far.
    steps: AtomicU64,
    /// Sectors looked up for all ranges so far.
    sectors: AtomicU64,
}

/// The files in a range of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilesAt {
    /// Whether some of the range is in chunks of metadata.
    pub is_metadata: bool,
    /// Files with data in the range, each once.
    pub files: Vec<FileAt>,
    /// Whether there may be more files.
    pub is_partial: bool,
}

/// A file with data in a range.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileAt {
    /// Paths from the top of the file system, of which there are several for a file with hard links.
    pub paths: BTreeSet<Vec<u8>>,
    /// Number of the inode in its subvolume.
    pub inode: u64,
    /// Offset in the file of the first byte that was found, in bytes.
    pub offset: u64,
}

impl Finder {
    /// Opens the file system whose only device, or one of its devices, begins at the first byte of `source`. Returns `None` if
    /// there is none, or if it cannot be opened.
    pub fn open(source: Arc<dyn Source>) -> Option<Self> {
        if !has_magic(&*source).unwrap_or(false) {
            return None;
        }
        let filesystem = FileSystem::open(vec![Device { name: String::new(), source }]).ok()?;
        let device = *filesystem.devices().keys().next()?;
        let (steps, sectors) = (AtomicU64::new(0), AtomicU64::new(0));
        Some(Self { device, filesystem, steps, sectors })
    }

    /// Returns the file system.
    pub fn file_system(&self) -> &FileSystem {
        &self.filesystem
    }

    /// Returns the files in `length` bytes from `offset` on. Only the beginning of a long range is looked up.
    pub fn find(&self, offset: u64, length: u64) -> FilesAt {
        let locator = Locator::new(&self.filesystem, MAX_FILES, self.steps.load(Relaxed));
        let sectors = length.div_ceil(SECTOR);
        let left = MAX_TOTAL_SECTORS.saturating_sub(self.sectors.load(Relaxed));
        let looked_up = sectors.min(MAX_SECTORS).min(left);
        let mut found = FilesAt { is_partial: sectors > looked_up, ..FilesAt::default() };
        for sector in 0..looked_up {
            match locator.find(self.device, offset + sector * SECTOR) {
                Some(Located::Data(owners)) => {
                    found.is_partial |= owners.is_partial;
                    owners.list.into_iter().for_each(|owner| found.add(owner));
                }
                Some(Located::Metadata) => found.is_metadata = true,
                None => {}
            }
        }
        self.steps.store(locator.steps(), Relaxed);
        self.sectors.fetch_add(looked_up, Relaxed);
        found
    }

    /// Returns what the bytes of the device are used for, by offset. Bytes of which nothing is known are in no part: what
    /// is before the first superblock, chunks of RAID5 and RAID6, and free space of a file system with a log tree.
    ///
    /// # Errors
    ///
    /// Fails if the extent tree cannot be read, or has too many extents.
    pub fn space(&self) -> Result<Vec<Space>> {
        space::of_device(&self.filesystem, self.device)
    }
}

impl FilesAt {
    fn add(&mut self, owner: Owner) {
        let Owner::File { paths, offset, inode, .. } = owner else { return };
        let paths: BTreeSet<_> = paths.into_iter().collect();
        if paths.is_empty() || self.files.iter().any(|file| file.paths == paths) {
            return;
        }
        if self.files.len() < MAX_FILES {
            self.files.push(FileAt { paths, inode, offset });
        } else {
            self.is_partial = true;
        }
    }
}

/// The smallest unit of data in btrfs, in bytes.
const SECTOR: u64 = 4096;

/// Maximum number of sectors of one range that are looked up, because each takes a search.
/// Limit in sectors.
const MAX_SECTORS: u64 = 64;

/// Maximum number of sectors that are looked up for all ranges, which take some seconds.
/// Limit in sectors.
const MAX_TOTAL_SECTORS: u64 = 1 << 18;

/// Maximum number of files that are named for one range.
/// Limit in files.
const MAX_FILES: usize = 16;
