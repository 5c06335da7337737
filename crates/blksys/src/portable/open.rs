//! Opening files after a look at them.
//!
//! POSIX has no descriptor that only identifies a file. A file is therefore looked at by name and then opened, and refused if
//! another one has the name by then. A FIFO or a device that takes its place in between is opened, and closed again.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
use rustix::io::{Errno, retry_on_intr};

use crate::posix::{self, READ, stamp, stamp_of};
use crate::stamps::Stamp;

/// A file that was looked up without opening it.
#[derive(Debug)]
pub struct Found<'a> {
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
    Ok(Found { stamp: stamp_of(path)?, folder: None, name: path })
}

/// Looks up `name` beneath `folder`. No symbolic link is followed, because only a system that resolves the whole name can keep it
/// beneath the folder.
///
/// # Errors
///
/// Fails with `EXDEV` if it leads out, and with `ELOOP` if there is a symbolic link on the way.
pub fn find_beneath<'a>(folder: &'a impl AsFd, name: &'a Path) -> io::Result<Found<'a>> {
    let folder = folder.as_fd();
    let found = Way::to(folder, name)?;
    let stat =
        retry_on_intr(|| statat(found.folder(folder), found.last, AtFlags::SYMLINK_NOFOLLOW))?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        return Err(Errno::LOOP.into());
    }
    Ok(Found { stamp: Stamp::from(&stat), folder: Some(folder), name })
}

impl Found<'_> {
    /// Opens exactly the file that was looked up, for reading.
    ///
    /// # Errors
    ///
    /// Fails if it may not be read, or another file has its name by now.
    pub fn open(&self) -> io::Result<File> {
        let file = match self.folder {
            Some(folder) => open_beneath(folder, self.name, READ)?.into(),
            None => posix::open(self.name)?,
        };
        match stamp(&file)?.identity == self.stamp.identity {
            true => Ok(file),
            false => Err(io::Error::other("was replaced while it was opened")),
        }
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
/// Fails if it is no folder, or may not be read.
pub fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(retry_on_intr(|| rustix::fs::open(path, FOLDER, Mode::empty()))?)
}

/// Opens a folder beneath another one.
///
/// # Errors
///
/// Fails like [`find_beneath`], and if it is no folder.
pub fn open_folder_beneath(folder: impl AsFd, name: &Path) -> io::Result<OwnedFd> {
    open_beneath(folder.as_fd(), name, FOLDER)
}

fn open_beneath(folder: BorrowedFd<'_>, name: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let found = Way::to(folder, name)?;
    let flags = flags | OFlags::NOFOLLOW;
    Ok(retry_on_intr(|| openat(found.folder(folder), found.last, flags, Mode::empty()))?)
}

/// The way to a file beneath a folder.
struct Way<'a> {
    /// The folders on the way, outermost first.
    folders: Vec<OwnedFd>,
    last: &'a Path,
}

impl<'a> Way<'a> {
    fn to(start: BorrowedFd<'_>, name: &'a Path) -> io::Result<Self> {
        let mut way = Self { folders: Vec::new(), last: Path::new(".") };
        let mut components = name.components().peekable();
        while let Some(component) = components.next() {
            match component {
                Component::CurDir => {}
                Component::Normal(last) if components.peek().is_none() => {
                    way.last = Path::new(last);
                }
                Component::Normal(name) => {
                    let folder = open_subfolder(way.folder(start), Path::new(name))?;
                    way.folders.push(folder);
                }
                Component::ParentDir if way.folders.pop().is_some() => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(Errno::XDEV.into());
                }
            }
        }
        Ok(way)
    }

    /// Returns the folder of the file.
    fn folder<'b>(&'b self, start: BorrowedFd<'b>) -> BorrowedFd<'b> {
        self.folders.last().map_or(start, AsFd::as_fd)
    }
}

fn open_subfolder(folder: BorrowedFd<'_>, name: &Path) -> io::Result<OwnedFd> {
    let flags = FOLDER | OFlags::NOFOLLOW;
    match retry_on_intr(|| openat(folder, name, flags, Mode::empty())) {
        Ok(opened) => Ok(opened),
        // Systems have different errors for a link.
        Err(error) => {
            let is_link = retry_on_intr(|| statat(folder, name, AtFlags::SYMLINK_NOFOLLOW))
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
            Err(if is_link { Errno::LOOP } else { error }.into())
        }
    }
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
