//! FreeBSD. Built and checked against its interface, and not run by the project.
//!
//! Its disks are character devices, which are read as a stream, like a pipe.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::libc;
use rustix::fs::{Advice, CWD, Mode, OFlags, fadvise, openat};
use rustix::io::{Errno, retry_on_intr};

use crate::posix::READ;
use crate::stamps::Stamp;

pub use crate::bsd::{file_system, uses_of};
pub use crate::direct::{clear_direct, is_direct, set_direct};
pub use crate::portable::*;

/// The name of this system.
pub const NAME: &str = "FreeBSD";

/// A file that was looked up without opening it. No driver ran, and no peer of a FIFO was released.
#[derive(Debug)]
pub struct Found<'a> {
    /// `O_PATH` descriptor, which identifies the file but cannot read it.
    node: OwnedFd,
    /// The stamp when it was looked up.
    pub stamp: Stamp,
    /// The lifetime is the name's, which other systems need again.
    name: PhantomData<&'a Path>,
}

/// Looks up the file at `path`.
///
/// # Errors
///
/// Fails if there is no such file, or a folder on the way may not be searched.
pub fn find(path: &Path) -> io::Result<Found<'_>> {
    Found::new(retry_on_intr(|| openat(CWD, path, NODE, Mode::empty()))?)
}

/// Looks up `name` beneath `folder`. Fails if it, or a symbolic link on the way, leads out of the folder.
///
/// # Errors
///
/// Fails with `EXDEV` if it leads out.
pub fn find_beneath<'a>(folder: &'a impl AsFd, name: &'a Path) -> io::Result<Found<'a>> {
    Found::new(beneath(folder.as_fd(), name, NODE)?)
}

impl Found<'_> {
    fn new(node: OwnedFd) -> io::Result<Self> {
        Ok(Self { stamp: stamp(&node)?, node, name: PhantomData })
    }

    /// Opens exactly the file that was looked up, for reading.
    ///
    /// # Errors
    ///
    /// Fails if it may not be read.
    pub fn open(&self) -> io::Result<File> {
        again(&self.node, READ).map(File::from)
    }

    /// Returns whether this is a regular file whose content the system generates on read. Here it is unknown.
    pub fn is_made_up(&self) -> bool {
        false
    }
}

/// Opens a folder, to look up names beneath it.
///
/// # Errors
///
/// Fails if it is no folder, or may not be searched.
pub fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(retry_on_intr(|| openat(CWD, path, FOLDER, Mode::empty()))?)
}

/// Opens a folder beneath another one.
///
/// # Errors
///
/// Fails like [`find_beneath`], and if it is no folder.
pub fn open_folder_beneath(folder: impl AsFd, name: &Path) -> io::Result<OwnedFd> {
    beneath(folder.as_fd(), name, FOLDER)
}

fn beneath(folder: BorrowedFd<'_>, name: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::RESOLVE_BENEATH;
    retry_on_intr(|| openat(folder, name, flags, Mode::empty())).map_err(|error| match error {
        Errno::NOTCAPABLE => Errno::XDEV.into(),
        error => error.into(),
    })
}

/// Opens what a descriptor identifies, as a new description.
fn again(node: &impl AsFd, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(retry_on_intr(|| openat(node, c"", flags | OFlags::EMPTY_PATH, Mode::empty()))?)
}

/// Opens a second, independent description of the same file, if the system allows it.
pub fn reopen(file: &File) -> Option<File> {
    again(file, READ).ok().map(File::from)
}

/// Opens the same file for reads past the page cache, if the file system supports it.
pub fn reopen_direct(file: &File) -> Option<File> {
    again(file, READ | OFlags::DIRECT).ok().map(File::from)
}

/// Advises the system that the file is read sequentially. It may ignore this.
pub fn advise_sequential(file: &File) {
    let _ = fadvise(file, 0, None, Advice::Sequential);
}

/// Drops clean pages of a file from the page cache.
pub fn drop_cached(file: &File) {
    let _ = fadvise(file, 0, None, Advice::DontNeed);
}

/// Gives up opening files by name, for good. Fails with `ENOSYS` if the kernel was built without Capsicum.
#[allow(unsafe_code)]
pub fn enter_capability_mode() -> Option<io::Result<()>> {
    // SAFETY: takes no arguments.
    Some(match unsafe { libc::cap_enter() } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    })
}

/// Clears memory in a child of this process. It is whole pages.
///
/// # Errors
///
/// Fails if the system refuses.
///
/// # Safety
///
/// The `length` bytes at `page` are mapped, private, and nothing but what bears to be zero in a child.
#[allow(unsafe_code)]
pub unsafe fn wipe_on_fork(page: *mut c_void, length: usize) -> io::Result<()> {
    // SAFETY: the caller's promise.
    match unsafe { libc::minherit(page, length, INHERIT_ZERO) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

const NODE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

const FOLDER: OFlags = NODE.union(OFlags::DIRECTORY);

/// `INHERIT_ZERO` in `sys/mman.h`.
const INHERIT_ZERO: libc::c_int = 3;
