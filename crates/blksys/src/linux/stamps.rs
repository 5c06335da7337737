//! Time stamps, by `statx`.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, StatxTimestamp};

use crate::stamps::{NodeType, Stamp};

/// Returns the current stamp. Attributes of a remote file are fetched again, not taken from a cache.
///
/// # Errors
///
/// Fails if the system cannot tell.
pub fn stamp(file: impl AsFd) -> io::Result<Stamp> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    match rustix::fs::statx(&file, c"", flags, StatxFlags::BASIC_STATS) {
        Ok(found) => Ok(Stamp::from(&found)),
        // Before Linux 4.11, or in a container whose filter does not know the call.
        Err(_) => Ok(Stamp::from(&rustix::fs::fstat(file)?)),
    }
}

/// Returns the time that a change gets at least from now on, in nanoseconds since 1970. File systems stamp with this clock, which
/// does not advance between two ticks.
pub fn stamp_clock() -> i128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
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
