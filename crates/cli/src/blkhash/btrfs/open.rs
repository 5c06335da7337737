//! Opens images, finds btrfs file systems in them and in their partitions, and groups devices by file
//! system.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use blkbtrfs::{Device, Superblock, Uuid};
use blkimage::partition::{self, Partition};
use blkimage::{Image, OpenOptions, Slice, Source};

use super::args;
use crate::image;
use crate::problem::Problem;
use crate::{messages, quote};

/// The devices of one file system.
pub struct Group {
    /// UUID of the file system.
    pub fsid: Uuid,
    /// Its devices, in the order of the command line.
    pub devices: Vec<Device>,
    /// Seed devices of other file systems on the command line, which this one may have been grown from.
    pub seeds: Vec<Device>,
    /// Name of the first image.
    pub name: OsString,
    /// Names of its devices and of others.
    pub names: Names,
}

/// The names of devices by those in messages, which quote the name of the image.
pub type Names = BTreeMap<String, OsString>;

/// Opens all images and groups their devices. Reports problems on standard error, and returns whether
/// there were any. An image that `check` rejects is one.
pub fn open(
    names: &[OsString],
    options: &OpenOptions,
    args: &args::Images,
    check: impl Fn(&Image) -> blkimage::Result<()>,
) -> (Vec<Group>, bool) {
    let mut groups: Vec<Group> = Vec::new();
    let mut seeds: Vec<(Uuid, Device)> = Vec::new();
    let mut full_names = Names::new();
    let mut has_failed = false;
    for name in names {
        let found = image::open::open(name, options)
            .and_then(|image| match check(&image) {
                Ok(()) => Ok(image),
                Err(error) => Err(Problem::of_image(&error, name)),
            })
            .map_err(|problem| problem.message(name))
            .and_then(|image| devices(name, &image, args));
        let found = found.unwrap_or_else(Found::failed);
        for problem in &found.problems {
            messages::message(problem);
            has_failed = true;
        }
        for (superblock, device) in found.devices {
            let fsid = superblock.fsid;
            let place = &device.name[quote::name(name.as_encoded_bytes()).len()..];
            let full_name = [name.as_os_str(), place.as_ref()].into_iter().collect();
            full_names.insert(device.name.clone(), full_name);
            if superblock.is_seed() {
                seeds.push((fsid, device.clone()));
            }
            match groups.iter_mut().find(|group| group.fsid == fsid) {
                Some(group) => group.devices.push(device),
                None => groups.push(Group {
                    fsid,
                    devices: vec![device],
                    seeds: Vec::new(),
                    name: name.clone(),
                    names: Names::new(),
                }),
            }
        }
    }
    for group in &mut groups {
        let others = seeds.iter().filter(|(fsid, _)| *fsid != group.fsid);
        group.names = full_names.clone();
        group.seeds = others.map(|(_, device)| device.clone()).collect();
    }
    (groups, has_failed)
}

/// Finds the btrfs file systems in an image.
fn devices(name: &OsStr, image: &Arc<Image>, args: &args::Images) -> Result<Found, String> {
    let shown = quote::name(name.as_encoded_bytes());
    let whole: Arc<dyn Source> = image.clone();
    if let Some(offset) = args.offset {
        let size = whole.size();
        let Some(window) = Slice::new(whole, offset, size.saturating_sub(offset)) else {
            return Err(format!("{shown}: --offset {offset} is past its end at {size}"));
        };
        return device(format!("{shown} at {offset}"), Arc::new(window)).map(Found::from);
    }
    let table = partition::table(&*whole).map_err(|error| format!("{shown}: {error}"));
    if let Some(wanted) = args.partition {
        let found = table?.get(wanted).map_err(|error| format!("{shown}: {error}"))?;
        let mut alone = Found::default();
        alone.add_partition(&shown, &whole, &found);
        alone.problems.append(&mut alone.notes);
        return Ok(alone);
    }
    let mut found = Found::default();
    if let Ok(table) = &table {
        for partition in &table.partitions {
            found.add_partition(&shown, &whole, partition);
        }
        found.problems.extend(table.lost.as_ref().map(|error| format!("{shown}: {error}")));
    }
    if found.devices.is_empty() && found.problems.is_empty() {
        let failed = |error| format!("{shown}: {}", Problem::of_image(&error, name).text());
        if !blkbtrfs::has_magic(&*whole).map_err(failed)? {
            // An error in the partition table is the more likely reason.
            let partitions = table?.partitions.len();
            let where_else = if partitions > 0 { ", in none of its partitions either" } else { "" };
            return Err(format!("{shown}: no btrfs file system{where_else}"));
        }
        found.devices.push(device(shown, whole)?);
    } else {
        for note in &found.notes {
            messages::message(note);
        }
    }
    Ok(found)
}

/// The file systems in an image.
#[derive(Default)]
struct Found {
    devices: Vec<(Superblock, Device)>,
    /// Reasons why there may be more.
    problems: Vec<String>,
    /// Notes on partitions without btrfs.
    notes: Vec<String>,
}

impl From<(Superblock, Device)> for Found {
    fn from(device: (Superblock, Device)) -> Self {
        Self { devices: vec![device], ..Self::default() }
    }
}

impl Found {
    /// Returns the result for an image that cannot be read.
    fn failed(reason: String) -> Self {
        Self { problems: vec![reason], ..Self::default() }
    }

    /// Adds a partition as a device, or the reason why it is none.
    fn add_partition(&mut self, image: &str, whole: &Arc<dyn Source>, found: &Partition) {
        let name = format!("{image} partition {}", found.number);
        let left = whole.size().saturating_sub(found.offset);
        if left < found.length {
            let Partition { offset, length, .. } = found;
            self.problems.push(if left == 0 {
                format!("{name}: lies past the end of the image, at {offset}")
            } else {
                format!("{name}: is cut off: the image has {left} of its {length} bytes")
            });
        }
        let Some(window) = Slice::new(whole.clone(), found.offset, found.length) else { return };
        match blkbtrfs::has_magic(&window)
            .map_err(|error| Problem::of_image(&error, image.as_ref()).text())
        {
            Ok(false) if left < found.length => {}
            Ok(false) => self.notes.push(format!("{name}: no btrfs file system, not verified")),
            Ok(true) => match device(name, Arc::new(window)) {
                Ok(device) => self.devices.push(device),
                Err(reason) => self.problems.push(reason),
            },
            Err(reason) => self.problems.push(format!("{name}: {reason}")),
        }
    }
}

fn device(name: String, source: Arc<dyn Source>) -> Result<(Superblock, Device), String> {
    let superblock = Superblock::read(&*source, &name).map_err(|error| error.to_string())?;
    Ok((superblock, Device { name, source }))
}
