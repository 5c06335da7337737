//! Reads around the bytes of a source that cannot be read, so that a comparison continues after them.
//!
//! [`ReadAround`] is a source that has zeros where a block cannot be read, and records the block in [`Places`]. The
//! reader of the results of the blocks, in order, asks [`Places`] which of them are void. Only errors about the bytes
//! that were asked for are passed over ([`blkimage::Error::is_of_bytes`]). A lost connection or a changed file is an
//! error as before.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use blkimage::{Dirty, ErrorKind, Extent, ExtentKind, Lent, Origin, OriginKind, Source, VolumeId};

use crate::{Error, Progress};

/// The reason why bytes of an image cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unreadable {
    /// Offset of the first block that cannot be read for this reason, in the content that is compared.
    pub offset: u64,
    /// Whether the image is the left one of two.
    pub is_left: bool,
    /// The error, whose offset is that in its file.
    pub error: blkimage::Error,
}

/// Reads that continue after bytes that cannot be read. The time in which reads fail is limited for all that go through
/// one of these.
pub struct Retries<'a> {
    block_size: u64,
    progress: &'a Progress,
    started: Instant,
    /// Held by the thread that reads blocks one by one.
    failing: Mutex<Failing>,
}

/// The time in which reads failed.
#[derive(Default)]
struct Failing {
    total: Duration,
    /// When the last one failed.
    until: Option<Instant>,
}

/// Receives the range of bytes of one block that cannot be read, and why.
type Take<'t> = dyn FnMut(Range<u64>, blkimage::Error) + 't;

impl<'a> Retries<'a> {
    /// Creates the reads of a pass. What fails is read again in blocks of `block_size` bytes, unless the pass was cancelled.
    pub fn new(block_size: u64, progress: &'a Progress) -> Self {
        Self { block_size, progress, started: Instant::now(), failing: Mutex::default() }
    }

    /// Fills `buf` with the bytes of `source` from `offset` on. Bytes of a block that cannot be read are zeros, and are
    /// passed to `take` with the reason, in order.
    ///
    /// # Errors
    ///
    /// Fails for an error that is not only about the bytes ([`blkimage::Error::is_of_bytes`]), and if reads have failed for
    /// ten minutes and for longer than everything else took.
    pub fn read(
        &self,
        source: &dyn Source,
        buf: &mut [u8],
        offset: u64,
        take: &mut Take<'_>,
    ) -> blkimage::Result<()> {
        let started = Instant::now();
        match source.read_exact_at(buf, offset) {
            Err(error) if error.is_of_bytes() => {
                let took = started..Instant::now();
                let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
                self.count(&mut failing, took, &error)?;
                let length = buf.len() as u64;
                if self.left_in_block(offset, length) < length {
                    return self.read_blocks(source, buf, offset, &mut failing, take);
                }
                buf.fill(0);
                take(offset..offset + length, error);
                Ok(())
            }
            read => read,
        }
    }

    /// Reads the part of each block on its own, after all of them could not be read.
    fn read_blocks(
        &self,
        source: &dyn Source,
        buf: &mut [u8],
        offset: u64,
        failing: &mut Failing,
        take: &mut Take<'_>,
    ) -> blkimage::Result<()> {
        let (mut rest, mut at) = (buf, offset);
        while !rest.is_empty() {
            let length = self.left_in_block(at, rest.len() as u64);
            let (part, next) = rest.split_at_mut(length as usize);
            let started = Instant::now();
            match source.read_exact_at(part, at) {
                Ok(()) => {}
                Err(error) if error.is_of_bytes() && !self.progress.is_cancelled() => {
                    self.count(failing, started..Instant::now(), &error)?;
                    part.fill(0);
                    take(at..at + length, error);
                }
                Err(error) => return Err(error),
            }
            (rest, at) = (next, at + length);
        }
        Ok(())
    }

    /// Returns the number of bytes from `offset` to the end of its block, at most `limit`.
    fn left_in_block(&self, offset: u64, limit: u64) -> u64 {
        limit.min(self.block_size - offset % self.block_size)
    }

    /// Counts the time of a read that failed. Returns an error if such reads took too long.
    fn count(
        &self,
        failing: &mut Failing,
        took: Range<Instant>,
        error: &blkimage::Error,
    ) -> blkimage::Result<()> {
        // Reads of several threads overlap.
        let from = failing.until.map_or(took.start, |until| until.max(took.start));
        failing.total += took.end.saturating_duration_since(from);
        failing.until = Some(failing.until.map_or(took.end, |until| until.max(took.end)));
        let reading = self.started.elapsed().saturating_sub(failing.total);
        if failing.total <= MAX_FAILING.max(reading) {
            return Ok(());
        }
        let (seconds, last) = (failing.total.as_secs(), error.reason());
        let reason = format!("gives up: reads that failed took {seconds} seconds: {last}");
        let given_up = blkimage::Error::new(ErrorKind::Io, error.name(), reason);
        Err(error.offset().into_iter().fold(given_up, blkimage::Error::at))
    }
}

/// Blocks of a pass that cannot be read. Memory does not grow with their number, because results come in order, and blocks
/// before the last result are dropped.
pub(crate) struct Places<'a> {
    retries: Retries<'a>,
    /// Bytes whose reasons are kept.
    kept: Range<u64>,
    /// Whether there was any, so that a pass without them does not wait for the lock.
    is_any: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The blocks after the last result: the first one, and the one after the last.
    blocks: BTreeMap<u64, u64>,
    reasons: Vec<Unreadable>,
}

impl<'a> Places<'a> {
    /// Creates the list for content in blocks of `block_size` bytes. Reasons are kept for blocks in the bytes `kept`.
    pub fn new(block_size: u64, kept: Range<u64>, progress: &'a Progress) -> Self {
        let retries = Retries::new(block_size, progress);
        Self { retries, kept, is_any: AtomicBool::new(false), state: Mutex::default() }
    }

    /// Returns the first of these blocks that could not be read. Forgets what is before them, and what it returns.
    pub fn take(&self, blocks: Range<u64>) -> Option<Range<u64>> {
        if !self.is_any.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.lock();
        loop {
            let first = state.blocks.first_entry()?;
            let (start, end) = (*first.key(), *first.get());
            if start >= blocks.end {
                return None;
            }
            first.remove();
            if end > blocks.end {
                state.blocks.insert(blocks.end, end);
            }
            let found = start.max(blocks.start)..end.min(blocks.end);
            if !found.is_empty() {
                return Some(found);
            }
        }
    }

    /// Returns the reasons, the first of each kind, by their offsets.
    pub fn into_reasons(self) -> Vec<Unreadable> {
        let mut reasons = self.state.into_inner().unwrap_or_else(PoisonError::into_inner).reasons;
        reasons.sort_by_key(|reason| reason.offset);
        reasons
    }

    /// Tells an error of a pass from the end of a pass that was cancelled while blocks could not be read.
    pub fn of_pass(&self, error: Error) -> Error {
        match error {
            Error::Image(_) if self.retries.progress.is_cancelled() => Error::Cancelled,
            error => error,
        }
    }

    /// Records the block at `offset`, and the reason if it is another one than before.
    fn add(&self, offset: u64, is_left: bool, error: blkimage::Error) {
        let block_size = self.retries.block_size;
        let block = offset / block_size;
        let mut state = self.lock();
        state.insert(block);
        self.is_any.store(true, Ordering::Release);
        let bytes = block * block_size..(block + 1).saturating_mul(block_size);
        if bytes.start >= self.kept.end || bytes.end <= self.kept.start {
            return;
        }
        let offset = bytes.start.max(self.kept.start);
        let is_same = |it: &Unreadable| it.is_left == is_left && is_alike(&it.error, &error);
        let known = state.reasons.iter().position(is_same);
        let reason = Unreadable { offset, is_left, error };
        match known {
            Some(known) if state.reasons[known].offset <= offset => {}
            Some(known) => state.reasons[known] = reason,
            None if state.reasons.len() < MAX_REASONS => state.reasons.push(reason),
            None => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds a block, and joins it with its neighbours.
    fn insert(&mut self, block: u64) {
        let mut range = block..block + 1;
        if let Some((start, end)) = self.blocks.range(..=block).next_back()
            && *end >= block
        {
            range = *start..(*end).max(range.end);
        }
        if let Some(end) = self.blocks.remove(&range.end) {
            range.end = end;
        }
        self.blocks.insert(range.start, range.end);
    }
}

/// Returns whether two errors have one reason, at whatever places.
fn is_alike(one: &blkimage::Error, other: &blkimage::Error) -> bool {
    let without_numbers = |reason: &str| reason.replace(|c: char| c.is_ascii_digit(), "");
    one.kind() == other.kind()
        && one.name() == other.name()
        && without_numbers(one.reason()) == without_numbers(other.reason())
        && one.io_error().map(std::io::Error::kind) == other.io_error().map(std::io::Error::kind)
}

/// A source whose blocks that cannot be read are zeros, and are recorded.
pub(crate) struct ReadAround<'a> {
    source: &'a dyn Source,
    places: &'a Places<'a>,
    is_left: bool,
}

impl<'a> ReadAround<'a> {
    /// Creates a source for a side of a comparison.
    pub fn new(source: &'a dyn Source, places: &'a Places<'a>, is_left: bool) -> Self {
        Self { source, places, is_left }
    }

    /// Replaces an error about the place of bytes by the rest of their block, so that reading them fails.
    fn or_rest<T>(
        &self,
        found: blkimage::Result<T>,
        offset: u64,
        limit: u64,
        rest: impl FnOnce(u64) -> T,
    ) -> blkimage::Result<T> {
        match found {
            Err(error) if error.is_of_bytes() => {
                Ok(rest(self.places.retries.left_in_block(offset, limit)))
            }
            found => found,
        }
    }
}

impl Source for ReadAround<'_> {
    fn size(&self) -> u64 {
        self.source.size()
    }

    fn extent(&self, offset: u64, limit: u64) -> blkimage::Result<Extent> {
        self.or_rest(self.source.extent(offset, limit), offset, limit, |length| Extent {
            offset,
            length,
            kind: ExtentKind::Data,
        })
    }

    fn origin(&self, offset: u64, limit: u64) -> blkimage::Result<Origin> {
        self.or_rest(self.source.origin(offset, limit), offset, limit, |length| Origin {
            offset,
            length,
            kind: OriginKind::Other,
        })
    }

    fn volumes(&self) -> Vec<VolumeId> {
        self.source.volumes()
    }

    fn volume_origins(
        &self,
        offset: u64,
        limit: u64,
        dirty: Dirty,
    ) -> blkimage::Result<Vec<Origin>> {
        let found = self.source.volume_origins(offset, limit, dirty);
        self.or_rest(found, offset, limit, |length| {
            vec![Origin { offset, length, kind: OriginKind::Other }]
        })
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> blkimage::Result<()> {
        let mut take = |range: Range<u64>, error| self.places.add(range.start, self.is_left, error);
        self.places.retries.read(self.source, buf, offset, &mut take)
    }

    fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        self.source.lend(offset, length)
    }

    fn granularity(&self) -> u64 {
        self.source.granularity()
    }

    fn queue_depth(&self) -> usize {
        self.source.queue_depth()
    }

    fn will_need(&self, offset: u64, length: u64) {
        self.source.will_need(offset, length);
    }

    fn read_ahead(&self) -> u64 {
        self.source.read_ahead()
    }

    fn check_unchanged(&self) -> blkimage::Result<()> {
        self.source.check_unchanged()
    }
}

/// Maximum number of reasons that are kept for reads that failed.
/// Limit in reasons.
const MAX_REASONS: usize = 8;

/// Maximum time for which reads of single blocks may fail, unless all others took longer. A disk takes seconds for
/// each place that it cannot read, and a server may take as long as it likes for each error.
/// Limit in seconds.
const MAX_FAILING: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_joined_and_taken_in_order() {
        let progress = Progress::new();
        let places = Places::new(512, 0..u64::MAX, &progress);
        assert_eq!(places.take(0..100), None);
        let error = || blkimage::Error::new(ErrorKind::Corrupt, "x", "is damaged");
        for block in [7, 3, 4, 9, 8, 3, 20] {
            places.add(block * 512 + 1, false, error().at(block));
        }
        assert_eq!(
            places.lock().blocks.clone().into_iter().collect::<Vec<_>>(),
            [(3, 5), (7, 10), (20, 21)]
        );
        assert_eq!(places.take(0..4), Some(3..4));
        assert_eq!(places.take(4..9), Some(4..5));
        assert_eq!(places.take(5..9), Some(7..9));
        assert_eq!(places.take(9..10), Some(9..10));
        assert_eq!(places.take(10..20), None);
        // What was passed over is forgotten.
        assert_eq!(places.take(21..30), None);
        assert!(places.lock().blocks.is_empty());
        let reasons = places.into_reasons();
        assert_eq!(reasons.iter().map(|it| it.offset).collect::<Vec<_>>(), [3 * 512]);
    }

    #[test]
    fn reads_that_fail_end_after_a_time() {
        let progress = Progress::new();
        let mut retries = Retries::new(512, &progress);
        let error = blkimage::Error::new(ErrorKind::Corrupt, "x", "is damaged");
        let now = Instant::now();
        let mut failing = Failing::default();
        let mut count = |retries: &Retries<'_>, from: u64, to: u64| {
            let at = |seconds| now + Duration::from_secs(seconds);
            retries.count(&mut failing, at(from)..at(to), &error)
        };
        count(&retries, 0, 400).unwrap();
        // Another thread failed at the same time.
        count(&retries, 0, 399).unwrap();
        count(&retries, 100, 600).unwrap();
        let given_up = count(&retries, 600, 601).unwrap_err();
        assert_eq!(
            given_up.to_string(),
            "x: gives up: reads that failed took 601 seconds: is damaged"
        );
        assert!(!given_up.is_of_bytes());
        // A pass that also reads other bytes may take as long again.
        retries.started = now.checked_sub(Duration::from_secs(1300)).unwrap_or(now);
        if retries.started < now {
            count(&retries, 601, 640).unwrap();
        }
    }
}
