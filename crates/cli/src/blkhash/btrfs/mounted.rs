//! Finds out how the running kernel computes the checksums of mounted file systems.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use blkimage::is_container;
use blksys::Mount;

use crate::quote;

/// A mounted file system.
pub struct Mounted {
    /// Content of /sys/fs/btrfs/FSID/checksum, such as `crc32c (crc32c-intel)`.
    pub checksum: String,
    /// Paths of its devices.
    pub devices: Vec<PathBuf>,
}

impl Mounted {
    /// Says how to verify the file system that is mounted at `path`.
    pub fn instead(&self, path: &OsStr) -> String {
        let devices = self.devices.iter().map(|it| quote::name(it.as_os_str().as_bytes()));
        let devices: Vec<_> = devices.collect();
        format!(
            "is a mounted file system: 'btrfs scrub start -B {}' verifies it, or unmount it and name {}",
            quote::name(path.as_bytes()),
            devices.join(" and "),
        )
    }
}

/// Returns the device of the mounted btrfs that holds the file `path`, if there is one.
pub fn below(path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok().filter(|path| path.is_file())?;
    source_of(&blksys::mounts().ok()?, &path)
}

/// Finds the mounted file system of the folder `path`. Returns `None` if `path` is not a folder, or one that
/// stands for the disks in it.
///
/// # Errors
///
/// Fails if the file system is not btrfs, or the kernel does not list it in /sys/fs/btrfs.
pub fn find(path: &Path) -> Option<Result<Mounted, String>> {
    (path.is_dir() && !is_container(path)).then(|| {
        let path = fs::canonicalize(path).map_err(|error| error.to_string())?;
        let mounts = blksys::mounts().map_err(|error| error.to_string())?;
        let source =
            source_of(&mounts, &path).ok_or("is a folder, and not of a btrfs file system")?;
        let device = fs::canonicalize(&source).unwrap_or(source);
        let known = device.file_name().and_then(from_sysfs);
        known.ok_or_else(|| "the kernel does not list it in /sys/fs/btrfs".to_owned())
    })
}

/// Returns the device of the btrfs that contains `path`, whose links were followed.
fn source_of(mounts: &[Mount], path: &Path) -> Option<PathBuf> {
    let mount = blksys::mount_of(mounts, path)?;
    (mount.kind == "btrfs").then(|| mount.source.clone())
}

fn from_sysfs(device: &std::ffi::OsStr) -> Option<Mounted> {
    for entry in fs::read_dir("/sys/fs/btrfs").ok()?.flatten() {
        let folder = entry.path();
        if !folder.join("devices").join(device).exists() {
            continue;
        }
        let checksum = fs::read_to_string(folder.join("checksum")).ok()?.trim().to_owned();
        let mut devices: Vec<PathBuf> = fs::read_dir(folder.join("devices"))
            .ok()?
            .flatten()
            // Sysfs shows a slash in the name of a device as an exclamation mark.
            .map(|entry| entry.file_name().as_bytes().to_vec())
            .map(|name| name.iter().map(|byte| if *byte == b'!' { b'/' } else { *byte }).collect())
            .map(|name| Path::new("/dev").join(OsString::from_vec(name)))
            .collect();
        devices.sort();
        return Some(Mounted { checksum, devices });
    }
    None
}

/// Advises loading a module if the kernel uses a generic driver although this CPU has a faster one.
pub fn advice(checksum: &str) -> Option<String> {
    let driver = checksum.split_once('(')?.1.trim_end_matches(')');
    let (_, module) = MODULES.iter().find(|(generic, _)| *generic == driver)?;
    has_better(driver).then(|| {
        format!(
            "{driver} is the generic implementation, and this CPU can do better: modprobe {module}, \
             then unmount and mount again, or load it before the first mount"
        )
    })
}

fn has_better(driver: &str) -> bool {
    #[cfg(target_arch = "x86_64")]
    return match driver {
        "crc32c-generic" => is_x86_feature_detected!("sse4.2"),
        _ => is_x86_feature_detected!("ssse3"),
    };
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = driver;
        false
    }
}

/// Generic drivers, and the modules with faster ones for x86. In newer kernels these are built in and
/// called `-lib`. The other checksums have no drivers better than the generic ones.
const MODULES: [(&str, &str); 2] =
    [("crc32c-generic", "crc32c_intel"), ("sha256-generic", "sha256_ssse3")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_generic_drivers_with_an_alternative_give_advice() {
        for checksum in
            ["crc32c (crc32c-lib)", "sha256 (sha256-ni)", "xxhash64 (xxhash64-generic)", "x"]
        {
            assert_eq!(advice(checksum), None);
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("ssse3") {
            let text = advice("sha256 (sha256-generic)").unwrap();
            assert!(text.contains("modprobe sha256_ssse3"), "{text}");
        }
    }
}
