//! Whether a destination is something else that the command reads or writes.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{major, makedev, minor};

use super::args::Args;
use crate::identity::Identity;
use crate::problem::Problem;

/// Refuses a destination that other options or descriptors of the command name as well, or that overlaps a source that is a
/// device.
pub fn check(args: &Args, metadata: &Metadata) -> Result<(), Problem> {
    let own = Identity::new(metadata);
    let is_own = |path: &Path| fs::metadata(path).is_ok_and(|it| Identity::new(&it) == own);
    if args.opening.secret_file.as_deref().is_some_and(is_own) {
        return Err("is the file of --secret-file".into());
    }
    if args.map.as_deref().is_some_and(is_own) {
        return Err("is the file of --map".into());
    }
    // What is printed would be written into the copy.
    let streams = [
        std::io::stdout().as_fd().try_clone_to_owned(),
        std::io::stderr().as_fd().try_clone_to_owned(),
    ];
    for stream in streams.into_iter().flatten() {
        let found = fs::File::from(stream).metadata();
        if found.is_ok_and(|it| {
            (it.is_file() || it.file_type().is_block_device()) && Identity::new(&it) == own
        }) {
            return Err("is standard output or standard error: - copies to it".into());
        }
    }
    match overlaps(&args.source, metadata) {
        true => {
            Err("overlaps the source: one of them is a part of the other, or is stored in it"
                .into())
        }
        false => Ok(()),
    }
}

/// Returns whether the source is a device that has the destination as a part, is a part of it, or is stored in it, or the
/// reverse.
fn overlaps(source: &OsStr, destination: &Metadata) -> bool {
    let Ok(source) = fs::metadata(source) else { return false };
    let (one, other) = (Identity::new(&source), Identity::new(destination));
    let (ones, others) = (Related::of(&source), Related::of(destination));
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
