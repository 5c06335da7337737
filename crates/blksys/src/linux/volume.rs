//! Where the bytes of a file are on its volume, by FIEMAP. All calls only read.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem;

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

use super::file_system::magic;
use crate::volume::{Reply, Volume, VolumeExtent};

/// Returns the volume of a regular file. `None` if it is unknown, or files there share no extents.
pub fn volume_of(file: &File) -> Option<Volume> {
    match magic(file)? {
        BTRFS => Some(Volume::Btrfs(btrfs_id(file).ok()?)),
        // The realtime device has addresses of its own.
        XFS if !is_realtime(file).ok()? => Some(Volume::Xfs),
        _ => None,
    }
}

/// Queries the extents of a file that touch `length` bytes from `start` on. `write_back` writes its dirty pages back first.
///
/// # Errors
///
/// Fails if the file system does not report them.
pub fn volume_extents(file: &File, start: u64, length: u64, write_back: bool) -> io::Result<Reply> {
    let mut query = Box::new(Query {
        header: Header {
            start,
            length,
            flags: if write_back { FLAG_SYNC } else { 0 },
            mapped: 0,
            capacity: CAPACITY as u32,
            reserved: 0,
        },
        extents: [RawExtent::default(); CAPACITY],
    });
    // SAFETY: the kernel reads the header, and writes to it and to at most `capacity` extents after it.
    unsafe { ioctl(file, Updater::<FIEMAP, Query>::new(&mut query))? };
    let count = (query.header.mapped as usize).min(CAPACITY);
    let extents = query.extents[..count].iter().map(
        |&RawExtent { logical, physical, length, flags, .. }| VolumeExtent {
            logical,
            physical,
            length,
            flags,
        },
    );
    Ok(Reply { extents: extents.collect(), is_full: count == CAPACITY })
}

/// Returns the id of the btrfs that holds a file.
fn btrfs_id(file: &File) -> io::Result<[u8; 16]> {
    let mut info = BtrfsInfo { max_id: 0, devices: 0, id: [0; 16], others: [0; BTRFS_INFO_REST] };
    // SAFETY: the structure has the size of the kernel's.
    unsafe { ioctl(file, Updater::<BTRFS_FS_INFO, BtrfsInfo>::new(&mut info))? };
    Ok(info.id)
}

/// Returns whether the bytes of a file are on the realtime device of its XFS.
fn is_realtime(file: &File) -> io::Result<bool> {
    let mut attributes = Attributes::default();
    // SAFETY: the structure has the size of the kernel's.
    unsafe { ioctl(file, Updater::<GET_ATTRIBUTES, Attributes>::new(&mut attributes))? };
    Ok(attributes.flags & FLAG_REALTIME != 0)
}

/// `struct fiemap_extent` in `linux/fiemap.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap`, with room for extents.
#[repr(C)]
struct Query {
    header: Header,
    extents: [RawExtent; CAPACITY],
}

#[repr(C)]
struct Header {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    capacity: u32,
    reserved: u32,
}

/// `struct btrfs_ioctl_fs_info_args` in `linux/btrfs.h`.
#[repr(C)]
struct BtrfsInfo {
    max_id: u64,
    devices: u64,
    id: [u8; 16],
    others: [u8; BTRFS_INFO_REST],
}

/// `struct fsxattr` in `linux/fs.h`.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    flags: u32,
    others: [u32; 6],
}

const _: () = assert!(mem::size_of::<Header>() == 32 && mem::size_of::<RawExtent>() == 56);
const _: () = assert!(mem::size_of::<BtrfsInfo>() == 1024 && mem::size_of::<Attributes>() == 28);

/// Number of extents in a reply, which takes 28 KiB.
const CAPACITY: usize = 512;

const BTRFS_INFO_REST: usize = 1024 - 32;

/// `FS_IOC_FIEMAP`.
const FIEMAP: Opcode = opcode::read_write::<Header>(b'f', 11);

/// `BTRFS_IOC_FS_INFO`.
const BTRFS_FS_INFO: Opcode = opcode::read::<BtrfsInfo>(0x94, 31);

/// `FS_IOC_FSGETXATTR`.
const GET_ATTRIBUTES: Opcode = opcode::read::<Attributes>(b'X', 31);

/// `FIEMAP_FLAG_SYNC`.
const FLAG_SYNC: u32 = 1;

/// `FS_XFLAG_REALTIME`.
const FLAG_REALTIME: u32 = 1;

const BTRFS: u32 = 0x9123_683e;
const XFS: u32 = 0x5846_5342;
