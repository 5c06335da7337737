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
        let (major, minor) = (major(metadata.rdev()), minor(metadata.rdev()));
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
    let text = fs::read_to_string(place.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(Identity::Device(makedev(major.parse().ok()?, minor.parse().ok()?)))
}
