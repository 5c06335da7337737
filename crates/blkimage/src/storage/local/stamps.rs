//! The time stamp of a file when reading begins, such that any later change alters it.
//!
//! A file system stamps with the time of its last tick (4 ms, 1 s, or 2 s on FAT), so a change within
//! the tick of the stamp does not alter it (git calls such a file racily clean). This module waits
//! until the tick is over before it takes the stamp. There is no delay for older files. New files wait
//! once and in parallel, because their ticks end at the same time.
//!
//! A write through a mapping to a page that is already dirty does not update the stamp. Dirty pages are
//! therefore written back first, which makes them read-only in all mappings, and the next write updates
//! the stamp. Pages of an overlayfs belong to another file and are only reached by a flush of the file.
//! A write in progress was stamped when it began, so this module waits for its end.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::access::Access;
use crate::error::{Error, ErrorKind, Result};
use crate::hint::Hint;
use crate::storage::local::page_cache;
use crate::sys::{self, FileSystem, NodeType, Stamp};

/// Returns a stamp of a regular file that any change after this call alters, as far as the file system
/// allows. Returns `stamp` for other types of files and with `force_share`.
pub(super) fn settled(
    file: &File,
    mut stamp: Stamp,
    name: &Path,
    access: Access,
    file_system: FileSystem,
) -> Result<Stamp> {
    let failed = |e: io::Error| Error::new(ErrorKind::Open, name, "cannot open").because(e);
    if stamp.node_type != NodeType::Regular || access.force_share {
        return Ok(stamp);
    }
    let begun = Instant::now();
    loop {
        let wait = until_settled(&stamp, file_system, sys::stamp_clock());
        if wait > 0 {
            std::thread::sleep(Duration::from_nanos(wait).max(MIN_SLEEP));
        } else {
            // A file system in memory never cleans a page.
            if file_system.is_stacked {
                let _ = file.sync_data();
            } else if !file_system.is_memory {
                page_cache::write_back(file, access.shared || file_system.is_network);
            }
            if !access.shared && !file_system.is_network {
                sys::wait_for_writes(file, stamp.size);
            }
        }
        let now = sys::stamp(file).map_err(failed)?;
        if now == stamp && wait == 0 {
            return Ok(stamp);
        }
        if begun.elapsed() > PATIENCE {
            let error = Error::new(ErrorKind::InUse, name, "is being written to");
            return Err(error.with_hint(Hint::ForceShare));
        }
        stamp = now;
    }
}

/// Returns the time in nanoseconds until a change gets a different stamp, or 0 if it does now.
fn until_settled(stamp: &Stamp, file_system: FileSystem, now: i128) -> u64 {
    let wait = |(seconds, nanoseconds): (i64, u64)| {
        let tick = tick(nanoseconds, file_system.counts_even_seconds);
        let end = i128::from(seconds) * SECOND + i128::from(nanoseconds) + i128::from(tick);
        // The clock was set back, or the stamp was set. A change gets a stamp of the current time.
        u64::try_from(end - now).ok().filter(|wait| *wait <= MAX_WAIT).unwrap_or(0)
    };
    let changed = wait(stamp.changed);
    // Users may set the modification time, but not the change time. Not every file system
    // updates the latter.
    if stamp.modified > stamp.changed { changed.max(wait(stamp.modified)) } else { changed }
}

/// Returns the resolution of a stamp in nanoseconds, derived from its trailing zeros. The ticks of the
/// kernel's clock need no extra time, because the stamp is compared with that clock.
fn tick(nanoseconds: u64, counts_even_seconds: bool) -> u64 {
    match nanoseconds {
        0 if counts_even_seconds => 2 * SECOND as u64,
        0 => SECOND as u64,
        _ => {
            let mut tick = 1;
            while nanoseconds.is_multiple_of(10 * tick) {
                tick *= 10;
            }
            tick
        }
    }
}

const SECOND: i128 = 1_000_000_000;

/// Maximum wait for a tick of the clock of a file system: the longest tick, plus a small step back of the clock.
/// Limit in nanoseconds.
const MAX_WAIT: u64 = 3 * SECOND as u64;

/// Shortest wait, a fraction of the kernel's shortest tick.
const MIN_SLEEP: Duration = Duration::from_millis(1);

/// Maximum time for which a file may keep changing before that is an error. More than twice the longest tick.
/// Limit in seconds.
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_follow_from_trailing_zeros() {
        assert_eq!(tick(0, false), 1_000_000_000);
        assert_eq!(tick(0, true), 2_000_000_000);
        assert_eq!(tick(120_000_000, false), 10_000_000);
        assert_eq!(tick(123_456_700, false), 100);
        assert_eq!(tick(123_456_789, true), 1);
    }

    #[test]
    fn only_stamps_within_the_current_tick_wait() {
        let file = tempfile::tempfile().unwrap();
        let file_system = sys::file_system(&file);
        let at = |changed, modified| Stamp { changed, modified, ..sys::stamp(&file).unwrap() };
        let wait = |stamp: Stamp, now: i128| until_settled(&stamp, file_system, now);
        let now = 1000 * SECOND + 4_000_007;
        for (changed, expected) in [
            // Within the tick of the clock, one tick before, and ahead of the clock, as
            // fine-grained stamps are.
            ((1000, 4_000_007), 1),
            ((1000, 4_000_003), 0),
            ((1000, 4_500_007), 500_001),
            // A file system with a resolution of one second.
            ((1000, 0), 995_999_993),
            ((999, 0), 0),
            // The clock was set back since.
            ((1010, 5), 0),
        ] {
            assert_eq!(wait(at(changed, changed), now), expected, "{changed:?}");
        }
        // A modification time long ago was set by a user. One that is ahead may be the
        // only stamp that works.
        assert_eq!(wait(at((1000, 4_000_007), (5, 0)), now), 1);
        assert_eq!(wait(at((0, 0), (1000, 4_000_007)), now), 1);
        // A modification time far ahead was set by a user, and must not hide the change time.
        assert_eq!(wait(at((1000, 4_000_007), (4_000_000_000, 0)), now), 1);
    }
}
