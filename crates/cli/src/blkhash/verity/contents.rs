//! What lies in blocks of data: the partition, and the files of a btrfs file system.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use blkbtrfs::{Device, FileSystem, Located, Locator, Owner};
use blkimage::partition::{self, Partition};
use blkimage::{Slice, Source};

use crate::blkhash::source::shown;
use crate::json::Name;

/// The partitions and file systems of an image.
#[derive(Default)]
pub struct Contents {
    partitions: Vec<Partition>,
    file_systems: Vec<Mounted>,
}

/// A file system, and where it begins in the data.
struct Mounted {
    offset: u64,
    length: u64,
    device: u64,
    filesystem: FileSystem,
}

/// What lies in blocks of data, as far as anything tells.
#[derive(Default)]
pub struct Place {
    /// Number of the partition that the first block is in.
    pub partition: Option<u32>,
    /// Whether a block is in the metadata of a file system.
    pub is_metadata: bool,
    /// Paths of files.
    files: BTreeSet<Vec<u8>>,
    /// Whether there may be more files.
    pub is_partial: bool,
}

impl Contents {
    /// Looks for partitions and file systems. What is damaged or of another kind is left out.
    pub fn of(whole: Arc<dyn Source>) -> Self {
        let partitions = partition::table(&*whole).unwrap_or_default().partitions;
        let places = match partitions.as_slice() {
            [] => vec![(0, whole.size())],
            partitions => partitions.iter().map(|it| (it.offset, it.length)).collect(),
        };
        let mounted = |(offset, length)| mount(&whole, offset, length);
        let file_systems = places.into_iter().filter_map(mounted).collect();
        Self { partitions, file_systems }
    }

    /// Returns the partition at `offset`, for blocks of which nothing tells which ones are damaged.
    pub fn find_partition(&self, offset: u64) -> Place {
        Place { is_partial: true, ..self.find(offset, 0) }
    }

    /// Returns what lies in `length` bytes of data from `offset` on.
    pub fn find(&self, offset: u64, length: u64) -> Place {
        let within = |start: u64, length: u64| {
            offset.checked_sub(start).is_some_and(|offset| offset < length)
        };
        let partition = self.partitions.iter().find(|it| within(it.offset, it.length));
        let mut place = Place { partition: partition.map(|it| it.number), ..Place::default() };
        let Some(found) = self.file_systems.iter().find(|it| within(it.offset, it.length)) else {
            return place;
        };
        let locator = Locator::new(&found.filesystem, MAX_FILES);
        let sectors = length.div_ceil(SECTOR);
        place.is_partial = sectors > MAX_LOOKUPS;
        for sector in 0..sectors.min(MAX_LOOKUPS) {
            let physical = offset - found.offset + sector * SECTOR;
            match locator.find(found.device, physical) {
                Some(Located::Data { owners, .. }) => {
                    place.is_partial |= owners.is_partial;
                    owners.list.iter().for_each(|owner| place.add(owner));
                }
                Some(Located::Metadata { .. }) => place.is_metadata = true,
                _ => {}
            }
        }
        place
    }
}

impl Place {
    fn add(&mut self, owner: &Owner) {
        let Owner::File { paths, .. } = owner else { return };
        for path in paths {
            if self.files.len() < MAX_FILES {
                self.files.insert(path.clone());
            } else {
                self.is_partial |= !self.files.contains(path);
            }
        }
    }

    /// Names the files for a line of text. It is empty if there are none.
    pub fn text(&self) -> String {
        let names = self.files.iter().map(|path| shown(OsStr::from_bytes(path)));
        let mut names: Vec<_> = names.collect();
        if self.is_metadata {
            names.push("metadata of btrfs".to_owned());
        }
        if self.is_partial && !names.is_empty() {
            names.push("more".to_owned());
        }
        if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) }
    }

    /// Returns the names of the files for JSON.
    pub fn names(&self) -> Vec<Name<'_>> {
        self.files.iter().map(|path| Name::new(OsStr::from_bytes(path))).collect()
    }
}

fn mount(whole: &Arc<dyn Source>, offset: u64, length: u64) -> Option<Mounted> {
    let slice = Slice::new(whole.clone(), offset, length)?;
    if !blkbtrfs::has_magic(&slice).unwrap_or(false) {
        return None;
    }
    let device = Device { name: String::new(), source: Arc::new(slice) };
    let filesystem = FileSystem::open(vec![device]).ok()?;
    let device = *filesystem.devices().keys().next()?;
    Some(Mounted { offset, length, device, filesystem })
}

/// The smallest unit of data in btrfs, in bytes.
const SECTOR: u64 = 4096;

/// Maximum number of sectors of one finding that are looked up, because each takes a search.
const MAX_LOOKUPS: u64 = 64;

/// Maximum number of files that are named for one finding.
const MAX_FILES: usize = 16;
