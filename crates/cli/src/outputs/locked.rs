//! Files that one process at a time writes.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use blkimage::Identity;
use rustix::fs::OFlags;

use super::{FileMode, Named, Opened, open};
use crate::problem::{Outcome, Problem};

/// Opens a regular file like [`open`], and locks it. A file that another process removes meanwhile, because it did not
/// complete it, is made anew.
pub fn open_locked(
    name: &Path,
    named: Named<'_>,
    mode: FileMode,
    flags: OFlags,
) -> Result<Opened, Problem> {
    loop {
        let opened = open(name, named, mode, flags)?;
        lock(&opened.file)?;
        let identity = Identity::new(&opened.metadata);
        // A process that failed removes its file, and may have done so before it was locked here.
        if Identity::of(name) == Some(identity) {
            // Another process was the first to lock the new file, and wrote something that is not to be removed.
            if opened.file.metadata().is_ok_and(|it| it.len() > 0) {
                opened.leftover.keep();
            }
            return Ok(opened);
        }
    }
}

/// Locks a regular file, if no other process has locked it.
pub fn lock(file: &File) -> Result<(), Problem> {
    if !file.metadata().map_err(|error| Problem::from(&error))?.is_file() {
        return Err("is not a regular file".into());
    }
    // A process that was killed holds its lock until its child has removed the file or left it.
    for _ in 0..MAX_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(Problem::from(&error)),
        }
    }
    Err(Problem::new("is being written by another process").with_outcome(Outcome::Busy))
}

/// Maximum number of times that a lock is tried, for half a second in all.
/// Limit in attempts.
const MAX_TRIES: u32 = 50;

const PAUSE: Duration = Duration::from_millis(10);
