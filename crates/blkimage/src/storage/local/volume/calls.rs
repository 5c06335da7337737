//! The system calls that report extents and identities. All of them only read.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem;

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

use crate::origin::Dirty;

/// The reply of the kernel to a query of extents, in which nothing is trusted.
pub(super) struct Reply {
    /// The extents, in the order in which the kernel returned them.
    pub extents: Vec<RawExtent>,
    /// Whether more extents may follow.
    pub is_full: bool,
}

/// `struct fiemap_extent` in `linux/fiemap.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RawExtent {
    /// Offset in the file, in bytes.
    pub logical: u64,
    /// Address on the volume, in bytes.
    pub physical: u64,
    /// Length in bytes.
    pub length: u64,
    reserved64: [u64; 2],
    /// `FIEMAP_EXTENT_*`.
    pub flags: u32,
    reserved: [u32; 3],
}

impl RawExtent {
    #[cfg(test)]
    pub fn new(logical: u64, physical: u64, length: u64, flags: u32) -> Self {
        Self { logical, physical, length, flags, ..Self::default() }
    }
}

/// Queries the extents of a file that touch `length` bytes from `start` on.
pub(super) fn extents(file: &File, start: u64, length: u64, dirty: Dirty) -> io::Result<Reply> {
    let mut query = Box::new(Query {
        header: Header {
            start,
            length,
            flags: if dirty == Dirty::WriteBack { FLAG_SYNC } else { 0 },
            mapped: 0,
            capacity: CAPACITY as u32,
            reserved: 0,
        },
        extents: [RawExtent::default(); CAPACITY],
    });
    // SAFETY: the kernel reads the header, and writes to it and to at most `capacity` extents behind it.
    unsafe { ioctl(file, Updater::<FIEMAP, Query>::new(&mut query))? };
    let count = (query.header.mapped as usize).min(CAPACITY);
    Ok(Reply { extents: query.extents[..count].to_vec(), is_full: count == CAPACITY })
}

/// Returns the id of the btrfs that holds a file.
pub(super) fn btrfs_id(file: &File) -> io::Result<[u8; 16]> {
    let mut info = BtrfsInfo { max_id: 0, devices: 0, id: [0; 16], others: [0; BTRFS_INFO_REST] };
    // SAFETY: the structure has the size of that of the kernel.
    unsafe { ioctl(file, Updater::<BTRFS_FS_INFO, BtrfsInfo>::new(&mut info))? };
    Ok(info.id)
}

/// Returns whether the bytes of a file lie on the realtime device of its XFS.
pub(super) fn is_realtime(file: &File) -> io::Result<bool> {
    let mut attributes = Attributes::default();
    // SAFETY: the structure has the size of that of the kernel.
    unsafe { ioctl(file, Updater::<GET_ATTRIBUTES, Attributes>::new(&mut attributes))? };
    Ok(attributes.flags & FLAG_REALTIME != 0)
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
