//! Other uses of a block device: mounts, swap, and devices on top of it.
//!
//! Related devices are looked up as well. A disk is in use if any of its partitions is, a partition if
//! its disk is, and both if a device on top of them is (device mapper, MD, loop devices). A device of a
//! btrfs is in use if another one of its devices is, because a mount names only one of them. All of
//! this is read from /sys and /proc. No device is opened for the lookup, because opening it would keep
//! other processes from mounting it.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::stamp_of;
use crate::mounts::{Mount, mounts_in, unescaped};
use crate::stamps::NodeType;
use crate::uses::Uses;

/// The files in which the system reports its devices.
pub(super) struct System {
    sys: PathBuf,
    mounts: PathBuf,
    swaps: PathBuf,
}

/// Device and inode of a file, and a description of its use.
type FileInUse = ((u64, u64), String);

/// A device that shares bytes with the requested one.
struct Member {
    number: (u32, u32),
    /// Name in the kernel.
    name: String,
    relation: Relation,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    Itself,
    Partition,
    Disk,
    Above,
}

struct Mounted {
    numbers: Vec<(u32, u32)>,
    place: String,
    is_btrfs: bool,
    is_writable: bool,
}

impl Default for System {
    fn default() -> Self {
        Self {
            sys: "/sys".into(),
            mounts: "/proc/self/mountinfo".into(),
            swaps: "/proc/swaps".into(),
        }
    }
}

impl System {
    /// Returns the folder of a device in /sys, or `None` if /sys does not show it.
    pub fn folder(&self, (major, minor): (u32, u32)) -> Option<PathBuf> {
        fs::canonicalize(self.sys.join(format!("dev/block/{major}:{minor}"))).ok()
    }

    /// Returns the uses of a block device.
    pub fn uses(&self, number: (u32, u32)) -> Uses {
        let mut uses = Uses::default();
        let mounts = self.mounts().unwrap_or_else(|| {
            uses.others.push("may be mounted: the list of mounts cannot be read".into());
            Vec::new()
        });
        let swaps = self.swaps();
        for member in self.members(number) {
            let subject = member.subject();
            let mut is_explained = false;
            for (is_writable, place) in self.mounts_of(&member, &mounts) {
                is_explained = true;
                if is_writable {
                    let writer = format!("{subject} mounted for writing {place}");
                    uses.writer.get_or_insert(writer);
                } else {
                    uses.others.push(format!("{subject} mounted read-only {place}"));
                }
            }
            let is_swap =
                |swap: &PathBuf| stamp_of(swap).is_ok_and(|found| found.device == member.number);
            if swaps.iter().any(is_swap) {
                uses.writer.get_or_insert(format!("{subject} in use as swap"));
            }
            if member.relation == Relation::Above && !is_explained {
                uses.others.push(format!("is a part of {}", member.name));
            }
        }
        uses.others.sort();
        uses.others.dedup();
        uses
    }

    /// Returns the regular files that the system may write to other than by name: backing files of
    /// mounted loop devices, and swap files.
    fn files_in_use(&self) -> Vec<FileInUse> {
        let mut files = Vec::new();
        for (number, file) in self.loops() {
            if let Ok(stamp) = stamp_of(&file)
                && stamp.node_type == NodeType::Regular
                && let Some(writer) = self.uses(number).writer
            {
                let (_, minor) = number;
                files.push((stamp.identity, format!("is the file of loop{minor}, which {writer}")));
            }
        }
        for file in self.swaps() {
            if let Ok(stamp) = stamp_of(&file)
                && stamp.node_type == NodeType::Regular
            {
                files.push((stamp.identity, "is in use as swap".into()));
            }
        }
        files
    }

    /// Returns the loop devices and their backing files.
    fn loops(&self) -> Vec<((u32, u32), PathBuf)> {
        let entries = fs::read_dir(self.sys.join("block")).into_iter().flatten().flatten();
        let loops = entries.filter(|entry| entry.file_name().as_bytes().starts_with(b"loop"));
        loops
            .filter_map(|entry| {
                let file = fs::read(entry.path().join("loop/backing_file")).ok()?;
                Some((number_of(&entry.path())?, path_of_line(&file)))
            })
            .collect()
    }

    /// Returns the device itself, its partitions or its disk, and all devices on top of them.
    fn members(&self, number: (u32, u32)) -> Vec<Member> {
        let mut members: Vec<Member> = Vec::new();
        let mut next = VecDeque::new();
        if let Some(folder) = self.folder(number) {
            if let Some(disk) = disk_of(&folder) {
                next.push_back((disk, Relation::Disk));
            }
            next.push_front((folder, Relation::Itself));
        }
        let loops = self.loops();
        while let Some((folder, relation)) = next.pop_front() {
            let Some(number) = number_of(&folder) else { continue };
            let is_known = members.iter().any(|member| member.number == number);
            if is_known || members.len() == MAX_MEMBERS {
                continue;
            }
            // A partition shares no bytes with the other partitions of its disk.
            if relation != Relation::Disk {
                let relation =
                    if relation == Relation::Itself { Relation::Partition } else { relation };
                next.extend(partitions(&folder).into_iter().map(|it| (it, relation)));
            }
            let holders = fs::read_dir(folder.join("holders")).into_iter().flatten().flatten();
            let holders = holders.filter_map(|entry| fs::canonicalize(entry.path()).ok());
            let above_loops = loops.iter().filter_map(|(loop_number, file)| {
                let found = stamp_of(file).ok()?;
                let is_on_top = found.node_type == NodeType::BlockDevice && found.device == number;
                self.folder(*loop_number).filter(|_| is_on_top)
            });
            next.extend(holders.chain(above_loops).map(|it| (it, Relation::Above)));
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            members.push(Member { number, name, relation });
        }
        members
    }

    /// Returns the mounts of a device: whether it is writable, and where.
    fn mounts_of(&self, member: &Member, mounts: &[Mounted]) -> Vec<(bool, String)> {
        let mut found: Vec<(bool, String)> = Vec::new();
        let mut numbers = vec![member.number];
        let mut is_mounted =
            MOUNTED.iter().any(|kind| self.sys.join("fs").join(kind).join(&member.name).exists());
        let volumes = fs::read_dir(self.sys.join("fs/btrfs")).into_iter().flatten().flatten();
        for volume in volumes {
            let devices = volume.path().join("devices");
            if devices.join(&member.name).exists() {
                is_mounted = true;
                let devices = fs::read_dir(devices).into_iter().flatten().flatten();
                numbers.extend(devices.filter_map(|it| number_of(&it.path())));
            }
        }
        for mount in mounts {
            let wanted = if mount.is_btrfs { &numbers[..] } else { &numbers[..1] };
            if mount.numbers.iter().any(|number| wanted.contains(number)) {
                found.push((mount.is_writable, format!("at {}", mount.place)));
            }
        }
        if is_mounted && found.is_empty() {
            // Unknown whether it is writable.
            found.push((true, "in another mount namespace, it seems".into()));
        }
        found
    }

    fn mounts(&self) -> Option<Vec<Mounted>> {
        Some(mounts_in(&self.mounts).ok()?.iter().map(Mounted::new).collect())
    }

    fn swaps(&self) -> Vec<PathBuf> {
        let lines = fs::read(&self.swaps).unwrap_or_default();
        let names = lines.split(|byte| *byte == b'\n').skip(1);
        let names = names.filter_map(|line| line.split(|byte| *byte == b' ').next());
        names
            .filter(|name| name.starts_with(b"/"))
            .map(|name| path_of_line(&unescaped(name)))
            .collect()
    }
}

impl Member {
    fn subject(&self) -> String {
        let name = &self.name;
        match self.relation {
            Relation::Itself => "is".into(),
            Relation::Partition => format!("has the partition {name}, which is"),
            Relation::Disk => format!("lies on the disk {name}, which is"),
            Relation::Above => format!("is a part of {name}, which is"),
        }
    }
}

impl Mounted {
    fn new(mount: &Mount) -> Self {
        let source = mount.source.as_os_str().as_bytes();
        let mut numbers = vec![mount.device];
        // Some file systems have an anonymous device number, and some of those have several devices.
        if mount.device.0 == 0 && source.starts_with(b"/dev/") {
            let devices = source.split(|byte| *byte == b':');
            let found = devices.filter_map(|name| stamp_of(&path_of_line(name)).ok());
            numbers = found.map(|stamp| stamp.device).filter(|it| *it != (0, 0)).collect();
        }
        let is_writable = mount.options.split(|byte| *byte == b',').next() == Some(b"rw");
        let place = mount.place.to_string_lossy().into_owned();
        Self { numbers, place, is_btrfs: mount.kind == "btrfs", is_writable }
    }
}

/// Returns the uses of a block device.
pub fn uses_of(number: (u32, u32)) -> Uses {
    System::default().uses(number)
}

/// Returns a reason why a regular file may be written to other than by name, if any. The list of such
/// files is cached for a second, for commands that open many files. Any later write changes the time
/// stamp of the file.
pub fn writer_of_file(identity: (u64, u64)) -> Option<String> {
    static KNOWN: Mutex<Option<(Instant, Vec<FileInUse>)>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let recent = known.take().filter(|(at, _)| at.elapsed() < RECENT);
    let is_listed = |files: &[FileInUse]| files.iter().any(|(file, _)| *file == identity);
    // A listed file may have been removed since, and its inode reused.
    let recent = recent.filter(|(_, files)| !is_listed(files));
    let (_, files) =
        known.insert(recent.unwrap_or_else(|| (Instant::now(), System::default().files_in_use())));
    let found = files.iter().find(|(file, _)| *file == identity);
    found.map(|(_, reason)| reason.clone())
}

/// Returns the disk of a partition, by the folder of the partition.
pub(super) fn disk_of(folder: &Path) -> Option<PathBuf> {
    folder.join("partition").exists().then(|| folder.parent().map(Path::to_path_buf)).flatten()
}

/// Returns the partitions of a disk.
pub(super) fn partitions(disk: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(disk).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.join("partition").exists()).collect()
}

fn number_of(folder: &Path) -> Option<(u32, u32)> {
    number(fs::read(folder.join("dev")).ok()?.trim_ascii())
}

fn number(text: &[u8]) -> Option<(u32, u32)> {
    let (major, minor) = std::str::from_utf8(text).ok()?.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns the path on a line of the kernel.
pub(super) fn path_of_line(line: &[u8]) -> PathBuf {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    PathBuf::from(std::ffi::OsStr::from_bytes(line))
}

/// File systems that list mounted devices in /sys by name, for all mount namespaces.
const MOUNTED: [&str; 4] = ["ext4", "xfs", "f2fs", "jfs"];

/// Maximum number of related devices, more than any disk has.
const MAX_MEMBERS: usize = 4096;

/// Time for which the list of files in use is cached.
const RECENT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
