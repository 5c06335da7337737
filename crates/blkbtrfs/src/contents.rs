//! Finds what lies in ranges of a disk: partitions, and files of btrfs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use blkimage::partition::{self, Partition};
use blkimage::{Slice, Source};

use crate::backref::Owner;
use crate::devices::Device;
use crate::filesystem::FileSystem;
use crate::locate::{Located, Locator};
use crate::superblock::has_magic;

/// The partitions and btrfs file systems of a disk.
///
/// The search in them is best effort, and never fails: what is damaged or of another kind is left out. The number of
/// its steps is limited, for each range and for all of them.
#[derive(Default)]
pub struct Contents {
    partitions: Vec<Partition>,
    file_systems: Vec<Mounted>,
}

/// A file system, and where it begins on the disk.
struct Mounted {
    offset: u64,
    length: u64,
    device: u64,
    filesystem: FileSystem,
    /// Steps taken for all ranges so far.
    steps: AtomicU64,
    /// Sectors looked up for all ranges so far.
    sectors: AtomicU64,
}

/// What lies in a range of a disk, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Content {
    /// Number of the partition that the first byte is in.
    pub partition: Option<u32>,
    /// Whether some of the range is in the metadata of a file system.
    pub is_metadata: bool,
    /// Paths of files, from the top of their file system.
    pub files: BTreeSet<Vec<u8>>,
    /// Whether there may be more files.
    pub is_partial: bool,
}

impl Contents {
    /// Looks for partitions and file systems.
    pub fn of(disk: &Arc<dyn Source>) -> Self {
        let partitions = partition::table(&**disk).unwrap_or_default().partitions;
        let places = match partitions.as_slice() {
            [] => vec![(0, disk.size())],
            partitions => partitions.iter().map(|it| (it.offset, it.length)).collect(),
        };
        let mounted = |(offset, length)| Mounted::new(disk, offset, length);
        let file_systems = places.into_iter().filter_map(mounted).collect();
        Self { partitions, file_systems }
    }

    /// Returns whether there is a file system whose files can be named.
    pub fn has_files(&self) -> bool {
        !self.file_systems.is_empty()
    }

    /// Returns the partition at `offset`, for a range of which only some unknown bytes matter.
    pub fn partition(&self, offset: u64) -> Content {
        Content { is_partial: true, ..self.find(offset, 0) }
    }

    /// Returns what lies in `length` bytes from `offset` on. Only the beginning of a long range is looked up.
    pub fn find(&self, offset: u64, length: u64) -> Content {
        let within = |start: u64, length: u64| {
            offset.checked_sub(start).is_some_and(|offset| offset < length)
        };
        let partition = self.partitions.iter().find(|it| within(it.offset, it.length));
        let mut content =
            Content { partition: partition.map(|it| it.number), ..Content::default() };
        match self.file_systems.iter().find(|it| within(it.offset, it.length)) {
            Some(found) => found.find(offset - found.offset, length, &mut content),
            // Another file system may have files there.
            None => content.is_partial = true,
        }
        content
    }
}

impl Mounted {
    fn new(disk: &Arc<dyn Source>, offset: u64, length: u64) -> Option<Self> {
        let slice = Slice::new(disk.clone(), offset, length)?;
        if !has_magic(&slice).unwrap_or(false) {
            return None;
        }
        let device = Device { name: String::new(), source: Arc::new(slice) };
        let filesystem = FileSystem::open(vec![device]).ok()?;
        let device = *filesystem.devices().keys().next()?;
        let (steps, sectors) = (AtomicU64::new(0), AtomicU64::new(0));
        Some(Self { offset, length, device, filesystem, steps, sectors })
    }

    /// Adds what lies in `length` bytes from the byte `physical` of the device on.
    fn find(&self, physical: u64, length: u64, content: &mut Content) {
        let locator = Locator::new(&self.filesystem, MAX_FILES, self.steps.load(Relaxed));
        let sectors = length.div_ceil(SECTOR);
        let left = MAX_TOTAL_SECTORS.saturating_sub(self.sectors.load(Relaxed));
        let looked_up = sectors.min(MAX_SECTORS).min(left);
        content.is_partial |= sectors > looked_up;
        for sector in 0..looked_up {
            match locator.find(self.device, physical + sector * SECTOR) {
                Some(Located::Data(owners)) => {
                    content.is_partial |= owners.is_partial;
                    owners.list.into_iter().for_each(|owner| content.add(owner));
                }
                Some(Located::Metadata) => content.is_metadata = true,
                None => {}
            }
        }
        self.steps.store(locator.steps(), Relaxed);
        self.sectors.fetch_add(looked_up, Relaxed);
    }
}

impl Content {
    /// Returns the content of a range of which nothing is known.
    pub fn unknown() -> Self {
        Self { is_partial: true, ..Self::default() }
    }

    fn add(&mut self, owner: Owner) {
        let Owner::File { paths, .. } = owner else { return };
        for path in paths {
            if self.files.len() < MAX_FILES {
                self.files.insert(path);
            } else {
                self.is_partial |= !self.files.contains(&path);
            }
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
