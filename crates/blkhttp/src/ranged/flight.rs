//! One request for announced bytes, and what of its bytes waits to be read.

use std::ops::Range;
use std::sync::{Arc, Condvar};

use bytes::Bytes;
use rangemap::RangeSet;
use tokio::task::AbortHandle;

use crate::Error;
use crate::blocks::Blocks;
use crate::queue::Plan;

/// A request for announced bytes. It is kept until the last of them was read.
pub(super) struct Flight {
    range: Range<u64>,
    /// What was not read yet.
    wanted: RangeSet<u64>,
    /// Number of bytes in `wanted`.
    unread: u64,
    blocks: Blocks,
    received: u64,
    /// `None` while it is in flight.
    pub outcome: Option<Result<(), Error>>,
    /// Number of readers that wait for it.
    pub waiting: usize,
    /// Offset of the last byte that the first waiting reader needs, and that wakes it.
    wake_at: u64,
    pub arrived: Arc<Condvar>,
    pub abort: Option<AbortHandle>,
    /// When it was last used, as a count.
    pub used: u64,
}

impl Flight {
    pub fn new(plan: Plan) -> Self {
        let unread = plan.wanted.iter().map(|range| range.end - range.start).sum();
        Self {
            received: plan.range.start,
            range: plan.range,
            wanted: plan.wanted,
            unread,
            blocks: Blocks::default(),
            outcome: None,
            waiting: 0,
            wake_at: u64::MAX,
            arrived: Arc::new(Condvar::new()),
            abort: None,
            used: 0,
        }
    }

    /// Returns the number of bytes that were not read yet, whether they arrived or not.
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// Returns the ranges that were not read yet.
    pub fn wanted(&self) -> impl Iterator<Item = Range<u64>> {
        self.wanted.iter().cloned()
    }

    /// Returns whether a byte has arrived.
    pub fn has(&self, offset: u64) -> bool {
        offset < self.received
    }

    /// Adds the next bytes, and returns whether a reader has to be woken.
    pub fn push(&mut self, at: u64, bytes: &[u8]) -> bool {
        let end = at + bytes.len() as u64;
        for wanted in self.wanted.overlapping(&(at..end)) {
            let part = wanted.start.max(at)..wanted.end.min(end);
            // Both ends are within the bytes.
            let bytes = &bytes[(part.start - at) as usize..(part.end - at) as usize];
            self.blocks.append(part.start, bytes, self.range.end - part.start);
        }
        self.received = end;
        self.waiting > 0 && self.received >= self.wake_at
    }

    /// Wakes all readers that wait.
    pub fn wake(&mut self) {
        self.wake_at = u64::MAX;
        self.arrived.notify_all();
    }

    /// Notes that a reader waits for the bytes from `at` on, up to `end` or the end of what was announced.
    pub fn wait_for(&mut self, at: u64, end: u64) {
        let wanted = self.wanted.get(&at).map_or(end, |wanted| wanted.end);
        self.waiting += 1;
        self.wake_at = self.wake_at.min(wanted.min(end));
    }

    /// Takes at most `most` bytes that arrived from `at` on, which are wanted.
    pub fn take(&mut self, at: u64, most: usize) -> Option<Bytes> {
        let wanted = self.wanted.get(&at)?.clone();
        let most = most.min(usize::try_from(wanted.end - at).unwrap_or(usize::MAX));
        let bytes = self.blocks.get(at, most)?;
        let taken = at..at + bytes.len() as u64;
        self.unread -= bytes.len() as u64;
        self.wanted.remove(taken);
        if self.blocks.block_of(at).is_some_and(|block| !self.wanted.overlaps(&block)) {
            self.blocks.free(at);
        }
        Some(bytes)
    }
}
