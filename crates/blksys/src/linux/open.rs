//! Opening files without side effects, by `O_PATH`, `openat2` and procfs.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, retry_on_intr};

use super::file_system::is_made_up;
use super::stamp;
use crate::posix::{self, READ};
use crate::stamps::{NodeType, Stamp};

/// A file that was looked up without opening it. No driver ran, and no peer of a FIFO was released.
pub struct Found<'a> {
    /// `O_PATH` descriptor, which identifies the file but cannot read it.
    node: OwnedFd,
    /// The stamp when it was looked up.
    pub stamp: Stamp,
    folder: Option<BorrowedFd<'a>>,
    name: &'a Path,
}

/// Looks up the file at `path`.
///
/// # Errors
///
/// Fails if there is no such file, or a folder on the way may not be searched.
pub fn find(path: &Path) -> io::Result<Found<'_>> {
    let node = retry_on_intr(|| rustix::fs::open(path, NODE, Mode::empty()))?;
    Ok(Found { stamp: stamp(&node)?, node, folder: None, name: path })
}

/// Looks up `name` beneath `folder`. Fails if it, or a symbolic link on the way, leads out of the folder.
///
/// # Errors
///
/// Fails with `EXDEV` if it leads out, and with `ENOSYS` if the system cannot keep it beneath the folder.
pub fn find_beneath<'a>(folder: &'a impl AsFd, name: &'a Path) -> io::Result<Found<'a>> {
    let folder = folder.as_fd();
    let node = beneath(folder, name, NODE)?;
    Ok(Found { stamp: stamp(&node)?, node, folder: Some(folder), name })
}

impl Found<'_> {
    /// Opens exactly the file that was looked up, for reading.
    ///
    /// # Errors
    ///
    /// Fails if it may not be read, or another file has its name by now.
    pub fn open(&self) -> io::Result<File> {
        let file = match posix::open(&descriptor_path(&self.node)) {
            // Without procfs a descriptor has no path, so the name is looked up again.
            Err(error) if error.kind() == io::ErrorKind::NotFound => match self.folder {
                Some(folder) => beneath(folder, self.name, READ)?.into(),
                None => posix::open(self.name)?,
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
        let is_on_device = rustix::fs::major(self.stamp.identity.0) != 0;
        self.stamp.node_type == NodeType::Regular && !is_on_device && is_made_up(&self.node)
    }
}

/// Opens a folder, to look up names beneath it.
///
/// # Errors
///
/// Fails if it is no folder, or may not be searched.
pub fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(retry_on_intr(|| rustix::fs::open(path, FOLDER, Mode::empty()))?)
}

/// Opens a folder beneath another one.
///
/// # Errors
///
/// Fails like [`find_beneath`], and if it is no folder.
pub fn open_folder_beneath(folder: impl AsFd, name: &Path) -> io::Result<OwnedFd> {
    beneath(folder, name, FOLDER)
}

/// Opens a second, independent description of the same file, if the system allows it.
pub fn reopen(file: &File) -> Option<File> {
    posix::open(&descriptor_path(file)).ok()
}

/// Opens the same file with O_DIRECT, if the file system supports it.
pub fn reopen_direct(file: &File) -> Option<File> {
    let path = descriptor_path(file);
    let flags = READ.union(OFlags::DIRECT);
    retry_on_intr(|| rustix::fs::open(&path, flags, Mode::empty())).ok().map(File::from)
}

/// Returns the path of an open descriptor. The path may lead to another file by now.
///
/// # Errors
///
/// Fails without procfs.
pub fn path_of(fd: &impl AsRawFd) -> io::Result<PathBuf> {
    std::fs::read_link(descriptor_path(fd))
}

fn beneath(folder: impl AsFd, name: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(&folder, name, flags, Mode::empty(), resolve) {
            // A rename somewhere in the system while ".." was resolved.
            Err(Errno::AGAIN) if tries < MAX_RENAME_RACES => tries += 1,
            Err(Errno::INTR) => {}
            // A filter of system calls that does not know this one. Without reading, nothing else forbids it.
            Err(Errno::PERM) if flags.contains(OFlags::PATH) => return Err(Errno::NOSYS.into()),
            other => return Ok(other?),
        }
    }
}

fn descriptor_path(fd: &impl AsRawFd) -> PathBuf {
    format!("/proc/self/fd/{}", fd.as_raw_fd()).into()
}

const NODE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

const FOLDER: OFlags = NODE.union(OFlags::DIRECTORY);

/// Maximum number of retries to open a file beneath a folder. openat2 fails with EAGAIN if a rename races
/// with "..", which is rare.
/// Limit in retries.
const MAX_RENAME_RACES: u32 = 64;
