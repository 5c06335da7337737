//! The locks with which QEMU tells other processes what it does with an image.
//!
//! They are locks of open file descriptions on single bytes of the file: from 100 on one for each permission that a process
//! uses, from 200 on one for each that it does not share. All of them are locks for reading, so that several processes
//! can hold them. A process takes its own before it looks for conflicting ones.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use crate::sys::{is_byte_locked, lock_byte, unlock_byte};
use crate::{Error, ErrorKind, Result};

/// Returns whether another process holds a lock for writing to the file or for not sharing reads. Returns `false` if the
/// file system has no locks.
pub(crate) fn has_writer(file: &File) -> bool {
    is_locked(file, &WRITERS)
}

/// Takes the locks with which QEMU writes to a file or a device and shares it with no other process. QEMU refuses to open it as
/// long as `file`, or a duplicate of it, is open. Where the file system has no locks, nothing happens.
///
/// # Errors
///
/// Fails with [`ErrorKind::InUse`] if another process may write to the file or relies on its content, by its own locks.
pub fn lock_for_writing(file: &File, name: &Path) -> Result<()> {
    if !WHILE_READING.iter().chain(&WHILE_WRITING).all(|byte| lock_byte(file, *byte)) {
        return Ok(());
    }
    let in_the_way = || {
        let ways = [(&WRITERS[..], MAY_WRITE), (&READERS, RELIES)];
        ways.into_iter().find(|(bytes, _)| is_locked(file, bytes))
    };
    // qemu-img looks at an image for a moment.
    for _ in 0..MAX_TRIES {
        if in_the_way().is_none() {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    match in_the_way() {
        Some((_, reason)) => Err(Error::new(ErrorKind::InUse, name, reason)),
        None => Ok(()),
    }
}

/// Gives up the locks of [`lock_for_writing`] that keep others from reading. A QEMU that writes is still refused.
pub fn lock_for_reading(file: &File) {
    for byte in WHILE_WRITING {
        unlock_byte(file, byte);
    }
}

fn is_locked(file: &File, bytes: &[i64]) -> bool {
    bytes.iter().any(|byte| is_byte_locked(file, *byte))
}

pub(crate) const MAY_WRITE: &str = "is in use by a process that may write to it";

const RELIES: &str = "is in use by a process that relies on what it holds";

/// Locks of a process that may write to the file: write (1) and resize (3) are in use, or read (0) is not shared.
const WRITERS: [i64; 3] = [101, 103, 200];

/// Locks of a process that reads the file and does not share write.
const READERS: [i64; 1] = [201];

/// Own locks: read is in use, write and resize are not shared.
const WHILE_READING: [i64; 3] = [100, 201, 203];

/// Own locks: write and resize are in use, and read is not shared.
const WHILE_WRITING: [i64; 3] = WRITERS;

/// Maximum number of times that the locks of QEMU are looked for, for half a second in all.
/// Limit in attempts.
const MAX_TRIES: u32 = 50;

const PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(blkhash_portable, should_panic)] // writers
    fn a_second_writer_is_refused_until_the_first_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        let open = || {
            File::options().read(true).write(true).create(true).truncate(false).open(&path).unwrap()
        };
        let (first, second) = (open(), open());
        assert!(!has_writer(&second));
        lock_for_writing(&first, &path).unwrap();
        // Own locks, also of a duplicate, do not conflict.
        assert!(has_writer(&second) && !has_writer(&first));
        assert!(!has_writer(&first.try_clone().unwrap()));
        let duplicate = first.try_clone().unwrap();
        drop(first);
        let refused = lock_for_writing(&second, &path).unwrap_err();
        assert_eq!((refused.kind(), refused.reason()), (ErrorKind::InUse, MAY_WRITE));
        lock_for_reading(&duplicate);
        assert!(!has_writer(&second));
        let refused = lock_for_writing(&second, &path).unwrap_err();
        assert_eq!(refused.reason(), RELIES);
        drop(duplicate);
        lock_for_writing(&second, &path).unwrap();
    }

    #[test]
    #[cfg_attr(blkhash_portable, should_panic)] // writers
    fn a_reader_that_shares_no_writes_is_in_the_way() {
        let file = tempfile::tempfile().unwrap();
        let other = File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file)));
        let other = other.unwrap();
        let name = Path::new("image");
        for (byte, is_refused) in [(100, false), (203, false), (201, true)] {
            assert!(lock_byte(&other, byte));
            let result = lock_for_writing(&file, name);
            assert_eq!(result.is_err(), is_refused, "{byte}");
        }
    }
}
