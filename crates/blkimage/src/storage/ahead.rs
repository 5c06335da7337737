//! Announcements of bytes that will be read.

use std::ops::Range;
use std::ptr;

use super::HostFile;
#[cfg(any(feature = "compressed", feature = "http"))]
use super::Storage;

/// Announces bytes ahead of a reader that reads all of them, from start to end.
#[cfg(any(feature = "compressed", feature = "http"))]
#[derive(Default)]
pub(crate) struct Ahead {
    /// Offset of the first byte that was not announced.
    end: u64,
}

#[cfg(any(feature = "compressed", feature = "http"))]
impl Ahead {
    /// Begins after bytes that were announced up to `end`.
    #[cfg(feature = "compressed")]
    pub fn behind(end: u64) -> Self {
        Self { end }
    }

    /// Announces bytes from `position` on, which the reader reads next, up to `end` at most. Called before each read. Each call
    /// announces many bytes or none.
    pub fn announce<S: Storage + ?Sized>(&mut self, storage: &S, position: u64, end: u64) {
        let reach = storage.read_ahead();
        let from = self.end.max(position);
        if reach == 0 || from >= end || from - position > reach / 2 {
            return;
        }
        self.end = position.saturating_add(reach).min(end);
        if from < self.end {
            storage.will_need(from, self.end - from);
        }
    }
}

/// Joins ranges of files that overlap or follow each other, so that they are announced once and together.
#[derive(Default)]
pub(crate) struct Joined<'a>(Option<(&'a HostFile, Range<u64>)>);

impl<'a> Joined<'a> {
    /// Appends a range. Returns the one before if both cannot be joined.
    pub fn push(
        &mut self,
        file: &'a HostFile,
        offset: u64,
        length: u64,
    ) -> Option<(&'a HostFile, Range<u64>)> {
        let end = offset.saturating_add(length);
        if let Some((last, range)) = &mut self.0
            && ptr::eq(*last, file)
            && (range.start..=range.end).contains(&offset)
        {
            range.end = range.end.max(end);
            return None;
        }
        self.0.replace((file, offset..end))
    }

    /// Returns the last range.
    pub fn finish(self) -> Option<(&'a HostFile, Range<u64>)> {
        self.0
    }
}
