//! Devices that share bytes with others.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use blkimage::Identity;
use rustix::fs::{major, makedev, minor};

/// Returns whether one of two files is a device that has the other as a part, or is stored in it, or both are stored in
/// one file.
pub fn overlap(source: &Metadata, destination: &Metadata) -> bool {
    let (one, other) = (Identity::new(source), Identity::new(destination));
    let (ones, others) = (Related::of(source), Related::of(destination));
    ones.whole.contains(&other)
        || others.whole.contains(&one)
        || ones.backing.is_some()
            && ones.backing == others.backing
            && !(ones.is_partition && others.is_partition)
        || ones.backing == Some(other)
        || others.backing == Some(one)
}

/// Returns the name of a mounted loop device, other than the destination, that is stored in the same file, and whether the
/// destination is that file. Mounts for reading count: nothing expects that what is beneath them changes.
pub fn mounted_loop(destination: &Metadata) -> Option<(String, bool)> {
    let is_file = destination.file_type().is_file();
    let own = Identity::new(destination);
    let backing = if is_file { Some(own) } else { Related::of(destination).backing };
    let backing = backing?;
    let entries = fs::read_dir("/sys/block").ok()?.flatten();
    let loops = entries.map(|entry| entry.path()).filter(|path| {
        let name = fs::read_to_string(path.join("loop/backing_file")).ok();
        name.and_then(|name| Identity::of(Path::new(name.trim_end_matches('\n')))) == Some(backing)
    });
    let mut mounts = None;
    for place in loops {
        let parts = fs::read_dir(&place).into_iter().flatten().flatten().map(|it| it.path());
        let parts = parts.filter(|path| path.join("partition").exists());
        let devices: Vec<_> = parts.chain([place.clone()]).filter_map(|it| number(&it)).collect();
        if devices.contains(&own) {
            continue;
        }
        let mounts = mounts.get_or_insert_with(mounted);
        if devices.iter().any(|device| mounts.contains(device)) {
            return Some((place.file_name()?.to_string_lossy().into_owned(), is_file));
        }
    }
    None
}

/// Returns the devices that are mounted here.
fn mounted() -> Vec<Identity> {
    let lines = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let devices = lines.lines().flat_map(|line| {
        // A btrfs has a number of its own.
        let number = line.split(' ').nth(2).and_then(parse_number);
        let source = line.split_once(" - ").and_then(|(_, rest)| rest.split(' ').nth(1));
        let source = source.filter(|it| it.starts_with("/dev/")).map(Path::new);
        [number, source.and_then(Identity::of)]
    });
    devices.flatten().collect()
}

/// What shares bytes with a device.
#[derive(Default)]
struct Related {
    /// The disk of a partition, and the partitions of a disk.
    whole: Vec<Identity>,
    /// The file of a loop device, or of that with the partition.
    backing: Option<Identity>,
    is_partition: bool,
}

impl Related {
    fn of(metadata: &Metadata) -> Self {
        if !metadata.file_type().is_block_device() {
            return Self::default();
        }
        let (major, minor) = (major(metadata.rdev() as _), minor(metadata.rdev() as _));
        let Ok(place) = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")) else {
            return Self::default();
        };
        let disk = place.parent().filter(|_| place.join("partition").exists());
        let parts = fs::read_dir(&place).into_iter().flatten().flatten();
        let parts = parts.map(|entry| entry.path()).filter(|path| path.join("partition").exists());
        let device = disk.unwrap_or(&place);
        let whole = disk.map(Path::to_owned).into_iter().chain(parts);
        let backing = fs::read_to_string(device.join("loop/backing_file")).ok();
        let backing = backing.and_then(|name| fs::metadata(name.trim_end_matches('\n')).ok());
        Self {
            whole: whole.filter_map(|path| number(&path)).collect(),
            backing: backing.map(|it| Identity::new(&it)),
            is_partition: disk.is_some(),
        }
    }
}

/// Reads the number of a device from its folder in sysfs.
fn number(place: &Path) -> Option<Identity> {
    parse_number(fs::read_to_string(place.join("dev")).ok()?.trim())
}

fn parse_number(text: &str) -> Option<Identity> {
    let (major, minor) = text.split_once(':')?;
    Some(Identity::Device(makedev(major.parse().ok()?, minor.parse().ok()?) as _))
}
