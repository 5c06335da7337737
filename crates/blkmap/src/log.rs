//! The commits of a file, from the last one back.

use crate::areas::read_page;
use crate::{Commit, Error, Header, ReadAt, Result};

/// The commits of a file and their offsets, from the last one back to the first.
pub struct Log<'a> {
    bytes: &'a dyn ReadAt,
    header: Header,
    /// Offset and sequence number of the next commit, if there is one.
    next: Option<(u64, Option<u64>)>,
}

impl<'a> Log<'a> {
    /// Starts with the commit at `end`.
    pub(crate) fn before(bytes: &'a dyn ReadAt, header: Header, end: u64) -> Self {
        Self { bytes, header, next: Some((end, None)) }
    }

    fn read(&self, at: u64, sequence: Option<u64>) -> Result<Commit> {
        let commit = Commit::parse(&read_page(self.bytes, at)?, at, &self.header)?;
        if sequence.is_some_and(|sequence| sequence != commit.sequence) {
            return Err(Error::damaged(at, "the commit has another number than the next one says"));
        }
        Ok(commit)
    }
}

impl Iterator for Log<'_> {
    type Item = Result<(u64, Commit)>;

    fn next(&mut self) -> Option<Self::Item> {
        let (at, sequence) = self.next.take()?;
        Some(self.read(at, sequence).map(|commit| {
            // A commit is after the one before it, so this ends.
            let before = (commit.previous, Some(commit.sequence - 1));
            self.next = (commit.previous > 0).then_some(before);
            (at, commit)
        }))
    }
}
