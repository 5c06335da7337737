//! What macOS and FreeBSD have from BSD: the list of mounts.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::Path;

use nix::libc;

use crate::file_systems::FileSystem;
use crate::posix::stamp_of;
use crate::stamps::NodeType;
use crate::uses::Uses;

/// Returns the properties of the file system that holds a file. The one with the node of a device does not hold its content.
pub fn file_system(file: &File) -> FileSystem {
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return FileSystem::UNKNOWN;
    }
    let mut found = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the structure lives until the call returns.
    if unsafe { libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) } != 0 {
        return FileSystem::UNKNOWN;
    }
    // SAFETY: the call succeeded, and so filled it.
    let found = unsafe { found.assume_init() };
    let kind = text(&found.f_fstypename);
    FileSystem {
        is_network: !has(&found, LOCAL),
        is_memory: kind == "tmpfs",
        counts_even_seconds: ["msdos", "msdosfs"].contains(&&*kind),
        ..FileSystem::UNKNOWN
    }
}

/// Returns the uses of a block device, by the list of mounts.
pub fn uses_of(number: (u32, u32)) -> Uses {
    let mut uses = Uses::default();
    let Some(mounts) = mounts() else {
        uses.others.push("may be mounted: the list of mounts cannot be read".into());
        return uses;
    };
    for mount in mounts {
        let source = text(&mount.f_mntfromname);
        let is_it = source.starts_with("/dev/")
            && stamp_of(Path::new(&*source)).is_ok_and(|stamp| {
                stamp.node_type == NodeType::BlockDevice && stamp.device == number
            });
        if !is_it {
            continue;
        }
        let place = text(&mount.f_mntonname);
        if !has(&mount, READ_ONLY) {
            uses.writer.get_or_insert(format!("is mounted for writing at {place}"));
        } else {
            uses.others.push(format!("is mounted read-only at {place}"));
        }
    }
    uses
}

fn mounts() -> Option<Vec<libc::statfs>> {
    // SAFETY: without room for mounts, only their number is returned.
    let count = unsafe { libc::getfsstat(std::ptr::null_mut(), 0, libc::MNT_NOWAIT) };
    // Room for some that are mounted meanwhile.
    let mut mounts = Vec::<libc::statfs>::with_capacity(usize::try_from(count).ok()? + 16);
    let size = mounts.capacity() * size_of::<libc::statfs>();
    // SAFETY: there is room for `size` bytes.
    let count = unsafe { libc::getfsstat(mounts.as_mut_ptr(), size as _, libc::MNT_NOWAIT) };
    let count = usize::try_from(count).ok()?.min(mounts.capacity());
    // SAFETY: the call filled that many.
    unsafe { mounts.set_len(count) };
    Some(mounts)
}

#[allow(clippy::useless_conversion, reason = "the fields' types differ between systems")]
fn has(mount: &libc::statfs, flag: u64) -> bool {
    u64::from(mount.f_flags) & flag != 0
}

/// Returns the text in a field of fixed size.
fn text(field: &[libc::c_char]) -> String {
    let bytes: Vec<u8> = field.iter().map(|&byte| byte as u8).collect();
    CStr::from_bytes_until_nul(&bytes)
        .map_or(String::new(), |text| text.to_string_lossy().into_owned())
}

#[allow(clippy::unnecessary_cast, reason = "their types differ between systems")]
const LOCAL: u64 = libc::MNT_LOCAL as u64;

#[allow(clippy::unnecessary_cast, reason = "their types differ between systems")]
const READ_ONLY: u64 = libc::MNT_RDONLY as u64;
