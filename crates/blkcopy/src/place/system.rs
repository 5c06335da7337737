//! What stores the bytes of devices and of files on an overlay, as the system tells.
//!
//! It is read once, before a process is restricted. Where the system tells nothing, nothing is known to be shared.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use blkimage::Identity;
use blksys::Mount;
use rustix::fs::makedev;

use super::overlay::Overlay;

/// The devices and mounts of this host.
#[derive(Clone, Debug, Default)]
pub struct System {
    beneath: HashMap<u64, Vec<Beneath>>,
    /// Names of disks and of their partitions, which have the name of the disk.
    names: HashMap<u64, String>,
    mounts: Vec<Mount>,
    mounted: Vec<Identity>,
}

/// What stores a device: a range of something else.
#[derive(Clone, Debug)]
pub struct Beneath {
    pub lower: Lower,
    pub start: u64,
    pub length: u64,
    /// Whether the device is all of the range, and not something within it.
    pub is_exact: bool,
}

/// What stores a device.
#[derive(Clone, Debug)]
pub enum Lower {
    Device(u64),
    File(PathBuf),
    /// A process that serves an NBD device.
    Process(u32),
}

impl System {
    /// Reads what the system tells now.
    pub fn now() -> Self {
        let mut system = Self::default();
        for disk in folders(Path::new("/sys/block")) {
            system.add_device(&disk, None);
        }
        system.mounts = blksys::mounts().unwrap_or_default();
        for mount in &system.mounts {
            // A btrfs has a number of its own.
            let named = mount.source.starts_with("/dev").then(|| Identity::of(&mount.source));
            let (major, minor) = mount.device;
            let device = Identity::Device(makedev(major, minor) as _);
            system.mounted.extend([Some(device), named.flatten()].into_iter().flatten());
        }
        for devices in folders(Path::new("/sys/fs/btrfs")) {
            let devices = folders(&devices.join("devices"));
            system.mounted.extend(devices.iter().filter_map(|it| number(it)).map(Identity::Device));
        }
        system.mounted.sort_unstable_by_key(|it| match it {
            Identity::Device(number) => *number,
            Identity::File(..) => 0,
        });
        system.mounted.dedup();
        system
    }

    /// Returns what stores a device.
    pub fn beneath(&self, device: u64) -> &[Beneath] {
        self.beneath.get(&device).map_or(&[], Vec::as_slice)
    }

    /// Returns the file of a layer that holds the content of the file at `path`, if that is on an overlay. Links in `path` were
    /// followed.
    pub fn beneath_overlay(&self, path: &Path) -> Option<PathBuf> {
        let mount = blksys::mount_of(&self.mounts, path).filter(|it| it.kind == "overlay")?;
        Overlay::new(mount).real(path.strip_prefix(&mount.place).ok()?)
    }

    /// Returns the devices with mounted file systems, and their names.
    pub fn mounted(&self) -> impl Iterator<Item = (Identity, &str)> {
        self.mounted.iter().filter_map(|device| match device {
            Identity::Device(number) => Some((*device, self.names.get(number)?.as_str())),
            Identity::File(..) => None,
        })
    }

    fn add_device(&mut self, folder: &Path, disk: Option<(u64, &str)>) {
        // A loop or NBD device without a file has no bytes, and there may be many.
        if disk.is_none() && read_number(&folder.join("size")) == Some(0) {
            return;
        }
        let Some(own) = number(folder) else { return };
        let base = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = disk.map_or(base.as_str(), |(_, name)| name).to_owned();
        let mut beneath = Vec::new();
        match disk {
            Some((disk, _)) => {
                let sectors = |name| read_number(&folder.join(name))?.checked_mul(512);
                let known = sectors("start").zip(sectors("size"));
                let (start, length) = known.unwrap_or((0, u64::MAX));
                let (lower, is_exact) = (Lower::Device(disk), known.is_some());
                beneath.push(Beneath { lower, start, length, is_exact });
            }
            None => beneath.extend(loop_file(folder)),
        }
        let within = |lower| Beneath { lower, start: 0, length: u64::MAX, is_exact: false };
        let slaves = folders(&folder.join("slaves"));
        beneath.extend(slaves.iter().filter_map(|it| number(it)).map(Lower::Device).map(within));
        let server = read_number(&folder.join("pid")).and_then(|pid| u32::try_from(pid).ok());
        beneath.extend(server.map(Lower::Process).map(within));
        self.beneath.insert(own, beneath);
        if disk.is_none() {
            // The name of a partition begins with its disk's, and names of most other entries do not.
            let is_part = |it: &PathBuf| {
                let name = it.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with(&base) && it.join("partition").exists()
            };
            let parts = folders(folder).into_iter().filter(is_part);
            parts.for_each(|part| self.add_device(&part, Some((own, &name))));
        }
        self.names.insert(own, name);
    }
}

/// Returns the file of a loop device.
fn loop_file(folder: &Path) -> Option<Beneath> {
    let name = fs::read(folder.join("loop/backing_file")).ok()?;
    let name = name.strip_suffix(b"\n").unwrap_or(&name).to_vec();
    let start = read_number(&folder.join("loop/offset")).unwrap_or(0);
    let limit = read_number(&folder.join("loop/sizelimit")).filter(|limit| *limit > 0);
    let lower = Lower::File(std::ffi::OsString::from_vec(name).into());
    Some(Beneath { lower, start, length: limit.unwrap_or(u64::MAX), is_exact: true })
}

/// Returns whether a device takes no writes. It can be opened for them nevertheless.
pub fn is_read_only(device: u64) -> bool {
    let (major, minor) = (rustix::fs::major(device as _), rustix::fs::minor(device as _));
    let told = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/ro"));
    told.is_ok_and(|told| told.trim() == "1")
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Reads the number of a device from its folder.
fn number(folder: &Path) -> Option<u64> {
    parse_number(fs::read_to_string(folder.join("dev")).ok()?.trim())
}

fn parse_number(text: &str) -> Option<u64> {
    let (major, minor) = text.split_once(':')?;
    Some(makedev(major.parse().ok()?, minor.parse().ok()?) as _)
}

fn read_number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}
