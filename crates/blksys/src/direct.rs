//! Reads past the page cache, by `O_DIRECT`.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::OFlags;

/// Reads past the page cache from now on. Returns `false` if the file system does not support it.
pub fn set_direct(file: &File) -> bool {
    let Ok(flags) = rustix::fs::fcntl_getfl(file) else { return false };
    rustix::fs::fcntl_setfl(file, flags | OFlags::DIRECT).is_ok()
}

/// Reads through the page cache from now on.
///
/// # Errors
///
/// Fails if the system refuses.
pub fn clear_direct(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags - OFlags::DIRECT)?)
}

/// Returns whether reads go past the page cache.
pub fn is_direct(file: impl AsFd) -> bool {
    rustix::fs::fcntl_getfl(file).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
}
