//! The file systems of Linux, by their magic numbers.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::io::retry_on_intr;

use crate::file_systems::FileSystem;

/// Returns the properties of the file system that holds a file. The one with the node of a device does not hold its content.
pub fn file_system(file: &File) -> FileSystem {
    let is_regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
    let Some(magic) = magic(file).filter(|_| is_regular) else { return FileSystem::UNKNOWN };
    FileSystem {
        is_network: NETWORK.contains(&magic),
        is_disk: DISK.contains(&magic),
        is_memory: [TMPFS, RAMFS].contains(&magic),
        is_stacked: magic == OVERLAYFS,
        knows_dirty_holes: DISK.contains(&magic) || [TMPFS, OVERLAYFS].contains(&magic),
        counts_even_seconds: magic == FAT,
    }
}

/// Returns whether the kernel generates the content of the files of this file system.
pub(super) fn is_made_up(file: impl AsFd) -> bool {
    magic(file).is_some_and(|magic| MADE_UP.contains(&magic))
}

/// Returns the magic number of the file system that holds a file.
pub(super) fn magic(file: impl AsFd) -> Option<u32> {
    retry_on_intr(|| rustix::fs::fstatfs(&file)).ok().map(|stat| stat.f_type as u32)
}

/// File systems that other hosts may write to: NFS, SMB (two numbers), CIFS, Ceph, GFS2, OCFS2, Lustre,
/// AFS (two numbers), 9p, and FUSE, which includes virtiofs and file systems with unknown storage.
const NETWORK: [u32; 12] = [
    0x6969,
    0x517b,
    0xfe53_4d42,
    0xff53_4d42,
    0x00c3_6400,
    0x0116_1970,
    0x7461_636f,
    0x0bd0_0bd0,
    0x5346_414f,
    0x6b41_4653,
    0x0102_1997,
    0x6573_5546,
];

/// File systems whose content the kernel generates: procfs, sysfs, tracefs, debugfs, securityfs,
/// configfs, cgroup (two versions), selinuxfs, smackfs, bpf, pstore, efivarfs, binfmt_misc, fusectl,
/// nfsd, rpc_pipefs, mqueue, resctrl, functionfs, gadgetfs, binderfs, xenfs, namespaces.
const MADE_UP: [u32; 24] = [
    0x9fa0,
    0x6265_6572,
    0x7472_6163,
    0x6462_6720,
    0x7363_6673,
    0x6265_6570,
    0x0027_e0eb,
    0x6367_7270,
    0xf97c_ff8c,
    0x4341_5d53,
    0xcafe_4a11,
    0x6165_676c,
    0xde5e_81e4,
    0x4249_4e4d,
    0x6573_5543,
    0x6e66_7364,
    0x6759_6969,
    0x1980_0202,
    0x0765_5821,
    0x0a64_7361,
    0x474d_4f44,
    0x6c6f_6f70,
    0xabba_1974,
    0x6e73_6673,
];

const FAT: u32 = 0x4d44;
const TMPFS: u32 = 0x0102_1994;
const RAMFS: u32 = 0x8584_58f6;
const OVERLAYFS: u32 = 0x794c_7630;

/// ext2/3/4, XFS, btrfs, F2FS, bcachefs.
const DISK: [u32; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0xca45_1a4e];
