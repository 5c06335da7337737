//! Linux system calls: opening without side effects, holes, file systems.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
#[cfg(feature = "nbd")]
use std::time::Instant;

#[cfg(feature = "nbd")]
use rustix::event::{PollFd, Timespec};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, SeekFrom, Stat, Statx, StatxFlags,
    StatxTimestamp,
};
use rustix::io::{Errno, retry_on_intr};

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeType {
    Regular,
    BlockDevice,
    Directory,
    Pipe,
    Other,
}

impl From<FileType> for NodeType {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::Regular,
            FileType::BlockDevice => Self::BlockDevice,
            FileType::Directory => Self::Directory,
            FileType::Fifo => Self::Pipe,
            _ => Self::Other,
        }
    }
}

/// A file that was looked up without opening it. No driver ran, and no peer of a FIFO was released.
pub(crate) struct Found<'a> {
    /// `O_PATH` descriptor, which identifies the file but cannot read it.
    node: OwnedFd,
    pub stamp: Stamp,
    folder: Option<BorrowedFd<'a>>,
    name: &'a Path,
}

/// Looks up the file at `path`.
pub(crate) fn find(path: &Path) -> io::Result<Found<'_>> {
    let node = retry_on_intr(|| rustix::fs::open(path, NODE, Mode::empty()))?;
    Ok(Found { stamp: stamp(&node)?, node, folder: None, name: path })
}

/// Looks up `name` beneath `folder`. Fails if it, or a symbolic link on the way, leads out of the folder.
pub(crate) fn find_beneath<'a>(folder: &'a impl AsFd, name: &'a Path) -> io::Result<Found<'a>> {
    let folder = folder.as_fd();
    let node = beneath(folder, name, NODE)?;
    Ok(Found { stamp: stamp(&node)?, node, folder: Some(folder), name })
}

impl Found<'_> {
    /// Opens exactly the file that was looked up, for reading.
    pub fn open(&self) -> io::Result<File> {
        let file = match open(&descriptor_path(&self.node)) {
            // Without procfs a descriptor has no path, so the name is looked up again.
            Err(error) if error.kind() == io::ErrorKind::NotFound => match self.folder {
                Some(folder) => beneath(folder, self.name, READ)?.into(),
                None => open(self.name)?,
            },
            result => return result,
        };
        match stamp(&file)?.identity == self.stamp.identity {
            true => Ok(file),
            false => Err(io::Error::other("was replaced while it was opened")),
        }
    }

    /// Returns whether this is a regular file whose content the kernel generates on read. Reading such
    /// a file may block, consume messages of another reader or run a driver.
    pub fn is_made_up(&self) -> bool {
        // Files on a block device have stored content.
        let is_on_device = rustix::fs::major(self.stamp.identity.0 as _) != 0;
        self.stamp.node_type == NodeType::Regular
            && !is_on_device
            && retry_on_intr(|| rustix::fs::fstatfs(&self.node))
                .is_ok_and(|stat| MADE_UP.contains(&(stat.f_type as u32)))
    }
}

fn open(path: &Path) -> io::Result<File> {
    Ok(retry_on_intr(|| rustix::fs::open(path, READ, Mode::empty()))?.into())
}

pub(crate) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(retry_on_intr(|| rustix::fs::open(path, FOLDER, Mode::empty()))?)
}

pub(crate) fn open_folder_beneath(folder: impl AsFd, name: &Path) -> io::Result<OwnedFd> {
    beneath(folder, name, FOLDER)
}

/// Opens a second, independent description of the same file, if the system allows it.
pub(crate) fn reopen(file: &File) -> Option<File> {
    open(&descriptor_path(file)).ok()
}

/// Opens the same file with O_DIRECT, if the file system supports it.
pub(crate) fn reopen_direct(file: &File) -> Option<File> {
    let path = descriptor_path(file);
    let flags = READ.union(OFlags::DIRECT);
    retry_on_intr(|| rustix::fs::open(&path, flags, Mode::empty())).ok().map(File::from)
}

/// Returns the path of an open descriptor. The path may lead to another file by now.
pub(crate) fn path_of(fd: &impl AsRawFd) -> io::Result<PathBuf> {
    std::fs::read_link(descriptor_path(fd))
}

/// Sets O_DIRECT. Returns `false` if the file system does not support it.
pub(crate) fn set_direct(file: &File) -> bool {
    let Ok(flags) = rustix::fs::fcntl_getfl(file) else { return false };
    rustix::fs::fcntl_setfl(file, flags | OFlags::DIRECT).is_ok()
}

/// Returns whether O_DIRECT is set.
#[cfg(feature = "qemu-nbd")]
pub(crate) fn is_direct(file: impl AsFd) -> bool {
    rustix::fs::fcntl_getfl(file).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
}

/// Seals a file in memory against any change.
#[cfg(feature = "qemu-nbd")]
pub(crate) fn seal(file: &File) -> io::Result<()> {
    use rustix::fs::SealFlags;
    let all = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    Ok(rustix::fs::fcntl_add_seals(file, all)?)
}

/// Fails unless `path` is a file that this process may execute.
#[cfg(feature = "qemu-nbd")]
pub(crate) fn is_executable(path: &Path) -> io::Result<()> {
    if stamp_of(path)?.node_type != NodeType::Regular {
        return Err(Errno::ACCESS.into());
    }
    Ok(rustix::fs::access(path, rustix::fs::Access::EXEC_OK)?)
}

pub(crate) fn clear_direct(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags - OFlags::DIRECT)?)
}

/// Returns the size of a block device in bytes. Keeps the file offset.
pub(crate) fn device_size(file: &File) -> io::Result<u64> {
    let position = rustix::fs::tell(file)?;
    let size = rustix::fs::seek(file, SeekFrom::End(0))?;
    rustix::fs::seek(file, SeekFrom::Start(position))?;
    Ok(size)
}

/// The identity of a file, and the attributes that change with its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub node_type: NodeType,
    pub identity: (u64, u64),
    /// Major and minor number, if this is a device.
    pub device: (u32, u32),
    pub size: u64,
    /// Time of the last modification, in seconds since 1970 and nanoseconds. Users can set it.
    pub modified: (i64, u64),
    /// Time of the last change of content or attributes. Only the system sets it.
    pub changed: (i64, u64),
}

/// Returns the current stamp. Attributes of a remote file are fetched again, not taken from a cache.
pub(crate) fn stamp(file: impl AsFd) -> io::Result<Stamp> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    match rustix::fs::statx(&file, c"", flags, StatxFlags::BASIC_STATS) {
        Ok(found) => Ok(Stamp::from(&found)),
        // Before Linux 4.11, or in a container whose filter does not know the call.
        Err(_) => Ok(Stamp::from(&rustix::fs::fstat(file)?)),
    }
}

/// Bytes that a file takes on its file system.
pub(crate) fn stored(file: impl AsFd) -> Option<u64> {
    let blocks = rustix::fs::fstat(file).ok()?.st_blocks;
    u64::try_from(blocks).ok()?.checked_mul(512)
}

/// Returns the current stamp of the file at `path`, without opening it.
pub(crate) fn stamp_of(path: &Path) -> io::Result<Stamp> {
    Ok(Stamp::from(&retry_on_intr(|| rustix::fs::statat(CWD, path, AtFlags::empty()))?))
}

#[allow(clippy::unnecessary_cast, reason = "the fields' types differ between architectures")]
impl From<&Stat> for Stamp {
    fn from(stat: &Stat) -> Self {
        Self {
            node_type: NodeType::from(FileType::from_raw_mode(stat.st_mode)),
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            device: (
                rustix::fs::major(stat.st_rdev as u64),
                rustix::fs::minor(stat.st_rdev as u64),
            ),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        }
    }
}

impl From<&Statx> for Stamp {
    fn from(found: &Statx) -> Self {
        let time = |time: StatxTimestamp| (time.tv_sec, u64::from(time.tv_nsec));
        Self {
            node_type: NodeType::from(FileType::from_raw_mode(u32::from(found.stx_mode))),
            identity: (
                rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
                found.stx_ino,
            ),
            device: (found.stx_rdev_major, found.stx_rdev_minor),
            size: found.stx_size,
            modified: time(found.stx_mtime),
            changed: time(found.stx_ctime),
        }
    }
}

/// Returns the clock that file systems use for time stamps, in nanoseconds since 1970. It does not
/// advance between two ticks.
pub(crate) fn coarse_clock() -> i128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

/// Waits for a `write` to the file that is in progress, because its time stamp is that of its start.
/// Both calls find nothing, but wait for the lock that local file systems hold while they write: the
/// first one on most file systems, the second one on XFS.
pub(crate) fn wait_for_writes(file: &File, size: u64) {
    let _ = seek_data(file, size);
    let _ = retry_on_intr(|| rustix::io::pread(file, &mut [0; 0], size));
}

/// Returns the offset of the first data at or after `offset`. Returns `None` if there is none.
pub(crate) fn seek_data(file: &File, offset: u64) -> io::Result<Option<u64>> {
    match retry_on_intr(|| rustix::fs::seek(file, SeekFrom::Data(offset))) {
        Ok(data) => Ok(Some(data)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the offset of the first hole at or after `offset`. The end of the file counts as a hole.
/// Returns `None` if `offset` lies past the end.
pub(crate) fn seek_hole(file: &File, offset: u64) -> io::Result<Option<u64>> {
    match retry_on_intr(|| rustix::fs::seek(file, SeekFrom::Hole(offset))) {
        Ok(hole) => Ok(Some(hole)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Advises the kernel that the file is read sequentially. The kernel may ignore this.
pub(crate) fn advise_sequential(file: &File) {
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Sequential);
}

/// The properties of the file system that holds a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSystem {
    /// Whether other hosts may write to it without updating this host's page cache.
    pub is_network: bool,
    /// Whether it is local and its files are cached in their own page cache. False for overlayfs, which
    /// caches them in other files, and for ZFS, which has its own cache.
    pub is_disk: bool,
    /// Whether it stores data only in the page cache and in swap.
    pub is_memory: bool,
    /// Whether its files, and their pages, belong to another file system.
    pub is_stacked: bool,
    /// Whether it reports holes correctly for data that is not written back yet.
    pub knows_dirty_holes: bool,
    /// Whether its time stamps have a resolution of two seconds.
    pub counts_even_seconds: bool,
}

pub(crate) fn file_system(file: &File) -> FileSystem {
    let Ok(stat) = retry_on_intr(|| rustix::fs::fstatfs(file)) else {
        return FileSystem {
            is_network: false,
            is_disk: false,
            is_memory: false,
            is_stacked: false,
            knows_dirty_holes: false,
            counts_even_seconds: false,
        };
    };
    let magic = stat.f_type as u32;
    FileSystem {
        is_network: NETWORK.contains(&magic),
        is_disk: DISK.contains(&magic),
        is_memory: [TMPFS, RAMFS].contains(&magic),
        is_stacked: magic == OVERLAYFS,
        knows_dirty_holes: DISK.contains(&magic) || [TMPFS, OVERLAYFS].contains(&magic),
        counts_even_seconds: magic == FAT,
    }
}

/// Waits until a descriptor is ready. Returns `false` at `deadline`.
#[cfg(feature = "nbd")]
pub(crate) fn poll(descriptors: &mut [PollFd<'_>], deadline: Option<Instant>) -> io::Result<bool> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.map(|left| Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        match rustix::event::poll(descriptors, left.as_ref()) {
            Err(Errno::INTR) => {}
            result => return Ok(result? > 0),
        }
    }
}

fn beneath(folder: impl AsFd, name: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(&folder, name, flags, Mode::empty(), resolve) {
            // A rename somewhere in the system while ".." was resolved.
            Err(Errno::AGAIN) if tries < MAX_RENAME_RACES => tries += 1,
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

fn descriptor_path(fd: &impl AsRawFd) -> PathBuf {
    format!("/proc/self/fd/{}", fd.as_raw_fd()).into()
}

/// Flags for reading: does not wait for a peer of a FIFO, and does not acquire a controlling terminal.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

const NODE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

const FOLDER: OFlags = NODE.union(OFlags::DIRECTORY);

/// Maximum number of retries. openat2 fails with EAGAIN if a rename races with "..", which is rare.
const MAX_RENAME_RACES: u32 = 64;

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
