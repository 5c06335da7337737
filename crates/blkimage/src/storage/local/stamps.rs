//! The stamp that a file has when reading begins: one that any later change moves.
//!
//! A file system stamps with the time of its last tick (4 ms, a second, two on FAT), so a change within
//! the tick of the stamp leaves it as it is (git calls such a file racily clean). The tick is waited out
//! before the stamp is taken: files older than it pay nothing, and those made just before wait once,
//! side by side, for their ticks all end at the same time.
//!
//! A page that was dirty already is written through a mapping without any stamp. It is written back
//! first, which makes it read-only in all mappings: the next write moves the stamp. Pages of an overlayfs are
//! those of another file, which only a flush of the file reaches. A write that
//! is under way was stamped when it began: it is waited for.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::access::Access;
use crate::error::{Error, ErrorKind, Result};
use crate::storage::local::page_cache;
use crate::sys::{self, FileSystem, NodeType, Stamp};

/// The stamp that tells every later change of a regular file from this moment, as far as its file
/// system can. Of anything else, and where changes do not matter, it is `stamp`, that of now.
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
        let wait = until_settled(&stamp, file_system, sys::coarse_clock());
        if wait > 0 {
            std::thread::sleep(Duration::from_nanos(wait).max(MIN_SLEEP));
        } else {
            // A file system without a place for data but memory never cleans a page.
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
            return Err(Error::new(ErrorKind::InUse, name, BUSY));
        }
        stamp = now;
    }
}

/// Nanoseconds until a change gets another stamp than this one. 0: it does now.
fn until_settled(stamp: &Stamp, file_system: FileSystem, now: i128) -> u64 {
    let wait = |(seconds, nanoseconds): (i64, u64)| {
        let tick = tick(nanoseconds, file_system.counts_even_seconds);
        let end = i128::from(seconds) * SECOND + i128::from(nanoseconds) + i128::from(tick);
        // The clock was set back, or the stamp was set: what is changed now gets a stamp of now.
        u64::try_from(end - now).ok().filter(|wait| *wait <= MAX_WAIT).unwrap_or(0)
    };
    let changed = wait(stamp.changed);
    // A process that changes a file may set this one, but not the other. Not every file system keeps that.
    if stamp.modified > stamp.changed { changed.max(wait(stamp.modified)) } else { changed }
}

/// How far apart stamps are at least, in nanoseconds: as their digits tell. The clock that they are
/// taken from is compared with as it ticks.
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

/// The longest tick, and a clock that was set back a little.
const MAX_WAIT: u64 = 3 * SECOND as u64;

/// A part of the shortest tick of the kernel's clock.
const MIN_SLEEP: Duration = Duration::from_millis(1);

/// Twice the longest tick: a file that is changed all this time is not going to keep still.
const PATIENCE: Duration = Duration::from_secs(5);

const BUSY: &str = "is being written to; use -U/--force-share to read it all the same";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_told_by_digits() {
        assert_eq!(tick(0, false), 1_000_000_000);
        assert_eq!(tick(0, true), 2_000_000_000);
        assert_eq!(tick(120_000_000, false), 10_000_000);
        assert_eq!(tick(123_456_700, false), 100);
        assert_eq!(tick(123_456_789, true), 1);
    }

    #[test]
    fn only_what_is_younger_than_its_tick_waits() {
        let file = tempfile::tempfile().unwrap();
        let file_system = sys::file_system(&file);
        let at = |changed, modified| Stamp { changed, modified, ..sys::stamp(&file).unwrap() };
        let wait = |stamp: Stamp, now: i128| until_settled(&stamp, file_system, now);
        let now = 1000 * SECOND + 4_000_007;
        for (changed, expected) in [
            // In the tick of the clock, one before it, and ahead of the clock as fine stamps are.
            ((1000, 4_000_007), 1),
            ((1000, 4_000_003), 0),
            ((1000, 4_500_007), 500_001),
            // Of a file system that knows seconds.
            ((1000, 0), 995_999_993),
            ((999, 0), 0),
            // Of a clock that was set back since.
            ((1010, 5), 0),
        ] {
            assert_eq!(wait(at(changed, changed), now), expected, "{changed:?}");
        }
        // A modification time of long ago is one that somebody set; one that is ahead may be all there is.
        assert_eq!(wait(at((1000, 4_000_007), (5, 0)), now), 1);
        assert_eq!(wait(at((0, 0), (1000, 4_000_007)), now), 1);
        // One far ahead was set, and hides nothing of the other.
        assert_eq!(wait(at((1000, 4_000_007), (4_000_000_000, 0)), now), 1);
    }
}
