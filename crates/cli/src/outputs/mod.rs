//! The files that the commands write: maps, hash files, root hashes, pictures and exports.
//!
//! [`open`] is the only function that opens or creates them. It follows a link only where the user typed its
//! name, and a new file is readable for the users that may read the image, at most. [`leftovers`] removes new files
//! that were not completed, and [`locked`] keeps two processes from writing one file.

mod leftovers;
mod locked;
mod mode;

use std::fs::{self, File, Metadata};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blkimage::container_of;
use rustix::fs::{CWD, Mode, OFlags, fchmod, openat};
use rustix::io::Errno;

use crate::messages;
use crate::trust;

pub use self::leftovers::{Fate, Leftover, guard, settle};
pub use self::locked::{lock, open_locked};
pub use self::mode::{FileMode, mode_of, mode_of_images};

/// Where the name of a file comes from.
#[derive(Clone, Copy)]
pub enum Named<'a> {
    /// From the command line. Links are followed, as a shell does.
    ByUser,
    /// It is derived from the name of this image, in whose folder other users may be able to write. A link is
    /// refused, and so is a file that is another user's.
    AfterImage(&'a Path),
}

/// A file to write.
pub struct Opened {
    pub file: File,
    pub metadata: Metadata,
    /// Removes the file unless it is kept, if it is new.
    pub leftover: Leftover,
}

/// Opens a file, or creates it with this mode, less the umask. Its content is left alone. `flags` are those in
/// addition to the ones for creating it. The error is a message without the name.
pub fn open(
    name: &Path,
    named: Named<'_>,
    mode: FileMode,
    flags: OFlags,
) -> Result<Opened, String> {
    let reason = |error: Errno| messages::reason(&error.into());
    let flags = flags | OFlags::CLOEXEC;
    // A file that comes or goes meanwhile is looked for again.
    for _ in 0..MAX_TRIES {
        let found = match named {
            Named::ByUser => openat(CWD, name, flags, Mode::empty()),
            Named::AfterImage(_) => openat(CWD, name, flags | OFlags::NOFOLLOW, Mode::empty()),
        };
        match found {
            Ok(file) => return existing(file.into(), named),
            Err(Errno::LOOP) if matches!(named, Named::AfterImage(_)) => return Err(LINK.into()),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(reason(error)),
        }
        let target = match named {
            Named::ByUser => end_of_links(name).map_err(reason)?,
            Named::AfterImage(_) => name.to_owned(),
        };
        if blksys::is_among_devices(&target) {
            return Err(blksys::AMONG_DEVICES.into());
        }
        match create(&target, flags, mode) {
            Ok(opened) => return Ok(opened),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(reason(error)),
        }
    }
    Err(reason(Errno::EXIST))
}

fn existing(file: File, named: Named<'_>) -> Result<Opened, String> {
    let reason = |error| messages::reason(&error);
    let metadata = file.metadata().map_err(reason)?;
    if let Named::AfterImage(image) = named
        && let image = container_of(image).unwrap_or(image)
        && let Ok(image) = fs::metadata(image)
        && !trust::only_writers_of(&image, &metadata)
    {
        return Err(OTHERS.into());
    }
    Ok(Opened { file, metadata, leftover: Leftover::NONE })
}

/// Creates a file that does not exist. A link in its place counts as a file.
fn create(name: &Path, flags: OFlags, mode: FileMode) -> Result<Opened, Errno> {
    let base = name.file_name().filter(|_| !name.as_os_str().as_bytes().ends_with(b"/"));
    let base = base.ok_or(Errno::ISDIR)?;
    let folder = match name.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    // The file is removed by way of this descriptor, so a folder that is swapped meanwhile does not matter.
    let folder: Arc<OwnedFd> = leftovers::folder(folder)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let flags = flags | OFlags::CREATE | OFlags::EXCL;
    let first = if mode.is_open { FileMode::PRIVATE.bits } else { mode.bits };
    // Nothing is in the file before its group is known.
    let file = File::from(openat(&*folder, base, flags, Mode::from_raw_mode(first as _))?);
    let stat =
        || file.metadata().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    let mut metadata = stat()?;
    let bits = mode.for_group(metadata.gid());
    if metadata.mode() & GROUP & !bits != 0 {
        fchmod(&file, Mode::from_raw_mode((metadata.mode() & 0o7777 & !GROUP) as _))?;
        metadata = stat()?;
    }
    let later = mode.is_open.then(|| bits & !umask());
    let leftover = Leftover::new(folder, base, &file, &metadata, later);
    Ok(Opened { file, metadata, leftover })
}

/// Returns the permissions that new files do not get. Called before there is another thread.
#[allow(clippy::useless_conversion, reason = "the type differs between systems")]
fn umask() -> u32 {
    let umask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    rustix::process::umask(umask);
    umask.as_raw_mode().into()
}

/// Returns the name that links with this name end at, which need not exist.
fn end_of_links(name: &Path) -> Result<PathBuf, Errno> {
    let mut name = name.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&name) else { return Ok(name) };
        name = name.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(Errno::LOOP)
}

const LINK: &str = "is a symbolic link, which is followed only for -o FILE and --map FILE";

const OTHERS: &str =
    "may be written by users who may not write the image: -o FILE or --map FILE uses it";

/// The permissions of the group.
const GROUP: u32 = 0o070;

/// Maximum number of attempts to open an output whose file comes and goes.
/// Limit in attempts.
const MAX_TRIES: usize = 64;

/// The number of links that Linux follows in one name.
const MAX_LINKS: usize = 40;

#[cfg(test)]
mod tests;
