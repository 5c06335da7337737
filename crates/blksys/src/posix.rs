//! What every system has.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, Timespec};
use rustix::fs::{AtFlags, CWD, OFlags, SeekFrom};
use rustix::io::{Errno, retry_on_intr};

use crate::stamps::{NodeType, Stamp};

/// Opens a file for reading.
#[cfg(any(not(target_os = "freebsd"), blkhash_portable))]
pub(crate) fn open(path: &Path) -> io::Result<File> {
    Ok(retry_on_intr(|| rustix::fs::open(path, READ, rustix::fs::Mode::empty()))?.into())
}

/// Returns the current stamp.
///
/// # Errors
///
/// Fails if the system cannot tell.
#[cfg(any(not(target_os = "linux"), blkhash_portable))]
pub fn stamp(file: impl AsFd) -> io::Result<Stamp> {
    Ok(Stamp::from(&rustix::fs::fstat(file)?))
}

/// Returns the current stamp of the file at `path`, without opening it.
///
/// # Errors
///
/// Fails if there is no such file, or a folder on the way may not be searched.
pub fn stamp_of(path: &Path) -> io::Result<Stamp> {
    Ok(Stamp::from(&retry_on_intr(|| rustix::fs::statat(CWD, path, AtFlags::empty()))?))
}

/// Returns whether an error of a read is about the bytes that were asked for: the medium or a checksum of the file system is
/// damaged there, and other bytes may be readable. Not so if the device or the server is gone.
pub fn is_of_bytes(error: &io::Error) -> bool {
    let of_bytes = [Errno::IO, Errno::BADMSG, Errno::ILSEQ];
    #[cfg(target_os = "linux")]
    let of_medium = [Errno::NODATA, Errno::UCLEAN, Errno::REMOTEIO];
    #[cfg(not(target_os = "linux"))]
    let of_medium = [];
    let found = Errno::from_io_error(error);
    found.is_some_and(|errno| of_bytes.contains(&errno) || of_medium.contains(&errno))
}

/// Returns the number of bytes that a file takes on its file system, if it is known.
pub fn stored(file: impl AsFd) -> Option<u64> {
    let blocks = rustix::fs::fstat(file).ok()?.st_blocks;
    u64::try_from(blocks).ok()?.checked_mul(512)
}

/// Returns the size of a block device in bytes. Keeps the file offset.
///
/// # Errors
///
/// Fails if it is no device.
pub fn device_size(file: &File) -> io::Result<u64> {
    let position = rustix::fs::tell(file)?;
    let size = rustix::fs::seek(file, SeekFrom::End(0))?;
    rustix::fs::seek(file, SeekFrom::Start(position))?;
    Ok(size)
}

/// Checks whether this process may execute the file at `path`.
///
/// # Errors
///
/// Fails if it may not, or if this is no regular file.
pub fn is_executable(path: &Path) -> io::Result<()> {
    if stamp_of(path)?.node_type != NodeType::Regular {
        return Err(Errno::ACCESS.into());
    }
    Ok(rustix::fs::access(path, rustix::fs::Access::EXEC_OK)?)
}

/// The reason not to create a file that [`is_among_devices`].
pub const AMONG_DEVICES: &str = "is no device: a new file in /dev would be in memory";

/// Returns whether the file that `path` leads to, which need not exist, is in the folder of devices: at any depth, but
/// not on another file system within it, such as `/dev/shm`. A regular file there is in memory, and none is expected.
pub fn is_among_devices(path: &Path) -> bool {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = std::fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    let parent = path.parent().filter(|it| *it != Path::new("")).unwrap_or(Path::new("."));
    let Ok(folder) = parent.canonicalize() else { return false };
    let device_of = |path: &Path| stamp_of(path).ok().map(|stamp| stamp.identity.0);
    let (Some(own), devices) = (device_of(&folder), device_of(Path::new(DEVICES))) else {
        return false;
    };
    let is_mount = devices != device_of(Path::new("/"));
    devices == Some(own) && (is_mount || folder.starts_with(DEVICES)) || is_devtmpfs(own)
}

/// Returns whether the file system with this number holds devices, as Linux reports. It may be mounted at another
/// place.
fn is_devtmpfs(device: u64) -> bool {
    let mounts = crate::mounts().unwrap_or_default();
    #[allow(clippy::unnecessary_cast, reason = "the type differs between systems")]
    let is_own = |(major, minor)| rustix::fs::makedev(major, minor) as u64 == device;
    mounts.iter().any(|mount| mount.kind == "devtmpfs" && is_own(mount.device))
}

const DEVICES: &str = "/dev";

/// The number of links that Linux follows in one name.
const MAX_LINKS: usize = 40;

/// Waits for a `write` to the file that is in progress, because its time stamp is of its start. Both calls find
/// nothing, but wait for the lock that local file systems hold while they write: the first one on most file systems,
/// the second one on XFS.
pub fn wait_for_writes(file: &File, size: u64) {
    let _ = seek_data(file, size);
    let _ = retry_on_intr(|| rustix::io::pread(file, &mut [0; 0], size));
}

/// Returns the offset of the first data at or after `offset`. Returns `None` if there is none.
///
/// # Errors
///
/// Fails if the file system cannot tell.
pub fn seek_data(file: &File, offset: u64) -> io::Result<Option<u64>> {
    match retry_on_intr(|| rustix::fs::seek(file, SeekFrom::Data(offset))) {
        Ok(data) => Ok(Some(data)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the offset of the first hole at or after `offset`. The end of the file counts as a hole.
/// Returns `None` if `offset` is past the end.
///
/// # Errors
///
/// Fails if the file system cannot tell.
pub fn seek_hole(file: &File, offset: u64) -> io::Result<Option<u64>> {
    match retry_on_intr(|| rustix::fs::seek(file, SeekFrom::Hole(offset))) {
        Ok(hole) => Ok(Some(hole)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Waits until a descriptor is ready. Returns `false` at `deadline`.
///
/// # Errors
///
/// Fails if the system cannot wait for them.
pub fn poll(descriptors: &mut [PollFd<'_>], deadline: Option<Instant>) -> io::Result<bool> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        #[allow(clippy::useless_conversion, reason = "the fields' types differ between systems")]
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

/// Flags for reading: does not wait for a peer of a FIFO, and does not acquire a controlling terminal.
pub(crate) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
