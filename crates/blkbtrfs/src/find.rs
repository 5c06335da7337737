//! Finds btrfs file systems on disks and in their partitions, and groups devices by file system.

use std::fmt;
use std::sync::Arc;

use blkimage::partition::{self, NoPartition, Partition, TableError};
use blkimage::{Slice, Source};

use crate::devices::Device;
use crate::error::{Error, Result};
use crate::superblock::{Superblock, has_magic};
use crate::uuid::Uuid;

/// The part of a disk that is a device of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// A partition, by its number.
    Partition(u32),
    /// Everything from this byte on.
    From(u64),
}

impl fmt::Display for Part {
    /// Writes the part after the name of its disk.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Partition(number) => write!(f, " partition {number}"),
            Self::From(offset) => write!(f, " at {offset}"),
        }
    }
}

/// The file systems on a disk.
#[derive(Default)]
pub struct Found {
    /// Devices of file systems.
    pub candidates: Vec<Candidate>,
    /// Reasons why there may be more.
    pub problems: Vec<Unverified>,
    /// Names of the partitions without btrfs.
    pub others: Vec<String>,
}

/// A device of a file system.
pub struct Candidate {
    /// Its newest intact superblock.
    pub superblock: Superblock,
    /// The device. Its name is the name of the disk, followed by the part.
    pub device: Device,
    /// The part of the disk.
    pub part: Part,
}

/// A disk, a part of it or a file system that cannot be verified.
#[derive(Debug)]
pub struct Unverified {
    /// Name of the disk or the part.
    pub name: String,
    /// Reason why it cannot be verified.
    pub error: Error,
}

impl fmt::Display for Unverified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            // The error of an image does not name the part.
            Error::Image(error) => {
                write!(f, "{}: {error}", self.name)?;
                error.io_error().map_or(Ok(()), |source| write!(f, ": {source}"))
            }
            error => error.fmt(f),
        }
    }
}

impl std::error::Error for Unverified {}

/// The devices of one file system.
pub struct Group {
    /// UUID of the file system.
    pub fsid: Uuid,
    /// Its devices, in the order in which they were found.
    pub devices: Vec<Device>,
    /// Seed devices of other file systems, which this one may have been grown from.
    pub seeds: Vec<Device>,
}

/// Finds the file systems on a disk: in every partition, or on the whole disk if no partition has one. If `part` is
/// given, looks only there.
pub fn find(disk: &Device, part: Option<Part>) -> Found {
    let mut found = Found::default();
    if let Err(error) = found.search(disk, part) {
        found.problems.push(Unverified { name: disk.name.clone(), error });
    }
    found
}

/// Groups devices by file system.
pub fn group(candidates: Vec<Candidate>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut seeds: Vec<(Uuid, Device)> = Vec::new();
    for Candidate { superblock, device, .. } in candidates {
        let fsid = superblock.fsid;
        if superblock.is_seed() {
            seeds.push((fsid, device.clone()));
        }
        match groups.iter_mut().find(|group| group.fsid == fsid) {
            Some(group) => group.devices.push(device),
            None => groups.push(Group { fsid, devices: vec![device], seeds: Vec::new() }),
        }
    }
    for group in &mut groups {
        let others = seeds.iter().filter(|(fsid, _)| *fsid != group.fsid);
        group.seeds = others.map(|(_, device)| device.clone()).collect();
    }
    groups
}

impl Found {
    fn search(&mut self, disk: &Device, part: Option<Part>) -> Result<()> {
        let missing = |reason: String| Error::Part { name: disk.name.clone(), reason };
        let no_table = |error| match error {
            TableError::Image(error) => Error::Image(error),
            error => missing(error.to_string()),
        };
        match part {
            None => {}
            Some(Part::Whole) => return self.add(disk, Part::Whole, disk.source.clone()),
            Some(Part::From(offset)) => {
                let size = disk.source.size();
                let rest = Slice::new(disk.source.clone(), offset, size.saturating_sub(offset));
                let rest = rest.ok_or_else(|| {
                    missing(format!("the offset {offset} is past its end at {size}"))
                })?;
                return self.add(disk, Part::From(offset), Arc::new(rest));
            }
            Some(Part::Partition(number)) => {
                let partition = partition::find(&*disk.source, number);
                let partition = partition.map_err(|error| match error {
                    NoPartition::Table(error) => no_table(error),
                    error => missing(error.to_string()),
                })?;
                self.add_partition(disk, &partition);
                return match self.others.pop() {
                    Some(name) => Err(Error::NotBtrfs { name, has_partitions: false }),
                    None => Ok(()),
                };
            }
        }
        let table = partition::table(&*disk.source).map_err(no_table);
        if let Ok(table) = &table {
            for partition in &table.partitions {
                self.add_partition(disk, partition);
            }
            let lost = table.lost.as_ref().map(|error| missing(error.to_string()));
            let lost = lost.map(|error| Unverified { name: disk.name.clone(), error });
            self.problems.extend(lost);
        }
        if !self.candidates.is_empty() || !self.problems.is_empty() {
            return Ok(());
        }
        // Each partition would be a second way to say it.
        self.others.clear();
        if has_magic(&*disk.source)? {
            return self.add(disk, Part::Whole, disk.source.clone());
        }
        // An error in the partition table is the more likely reason.
        let has_partitions = !table?.partitions.is_empty();
        Err(Error::NotBtrfs { name: disk.name.clone(), has_partitions })
    }

    /// Adds a partition as a device, or the reason why it is none.
    fn add_partition(&mut self, disk: &Device, found: &Partition) {
        let Partition { number, offset, length } = *found;
        let part = Part::Partition(number);
        let name = format!("{}{part}", disk.name);
        let left = disk.source.size().saturating_sub(offset);
        if left < length {
            let reason = match left {
                0 => format!("lies past the end of the image, at {offset}"),
                _ => format!("is cut off: the image has {left} of its {length} bytes"),
            };
            let error = Error::Part { name: name.clone(), reason };
            self.problems.push(Unverified { name: name.clone(), error });
        }
        let Some(window) = Slice::new(disk.source.clone(), offset, length) else { return };
        let added = match has_magic(&window) {
            Ok(true) => self.add(disk, part, Arc::new(window)),
            Ok(false) if left < length => Ok(()),
            Ok(false) => return self.others.push(name),
            Err(error) => Err(error.into()),
        };
        self.problems.extend(added.err().map(|error| Unverified { name, error }));
    }

    fn add(&mut self, disk: &Device, part: Part, source: Arc<dyn Source>) -> Result<()> {
        let name = format!("{}{part}", disk.name);
        let superblock = Superblock::read(&*source, &name)?;
        self.candidates.push(Candidate { superblock, device: Device { name, source }, part });
        Ok(())
    }
}
