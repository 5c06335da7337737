//! Walks the pages of an image in order, and says where a map has them.

use crate::directory::Directory;
use crate::page_run::PageRun;
use crate::{Map, PAGE, Result};

/// Consecutive pages of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Number of the first page.
    pub(crate) first: u64,
    /// Number of pages.
    pub(crate) count: u64,
    pub(crate) kind: SpanKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// All blocks are whole blocks of zeros.
    Zeros,
    /// The map does not know them.
    Unknown,
    /// They are in the file from `offset` on, and `hash` is the index of the first one's hash.
    Stored { offset: u64, hash: u64 },
}

impl Span {
    /// Returns one page.
    pub(crate) fn at(&self, index: u64) -> Self {
        let kind = match self.kind {
            SpanKind::Stored { offset, hash } => {
                SpanKind::Stored { offset: offset + index * PAGE as u64, hash: hash + index }
            }
            kind => kind,
        };
        Self { first: self.first + index, count: 1, kind }
    }
}

/// A walk over the pages from `page` to `end`.
pub(crate) struct Pages<'a> {
    directory: Directory<'a>,
    /// The entry that ends after `page`, if one is left.
    run: Option<PageRun>,
    page: u64,
    end: u64,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(map: &'a Map, first: u64, end: u64) -> Self {
        Self { directory: map.directory(), run: None, page: first, end: end.min(map.pages()) }
    }

    /// Returns the pages from here on that are of one kind, or `None` at the end.
    pub(crate) fn current(&mut self) -> Result<Option<Span>> {
        if self.page >= self.end {
            return Ok(None);
        }
        while self.run.is_none_or(|run| run.end() <= self.page) {
            let Some(run) = self.directory.next_run(None)? else {
                return Ok(Some(self.span(self.end, SpanKind::Unknown)));
            };
            self.run = Some(run);
        }
        let run = self.run.expect("an entry");
        if run.first > self.page {
            return Ok(Some(self.span(run.first, SpanKind::Unknown)));
        }
        let skipped = self.page - run.first;
        let kind = if run.is_zero() {
            SpanKind::Zeros
        } else {
            let offset = run.offset + skipped * PAGE as u64;
            SpanKind::Stored { offset, hash: run.first_hash + skipped }
        };
        Ok(Some(self.span(run.end(), kind)))
    }

    /// Moves on by `count` pages, at most to the end of the current ones.
    pub(crate) fn advance(&mut self, count: u64) {
        self.page += count;
    }

    /// Moves on to `page`, which is not before the current one.
    pub(crate) fn seek(&mut self, page: u64) {
        debug_assert!(page >= self.page, "a walk goes forward");
        self.page = page;
    }

    fn span(&self, end: u64, kind: SpanKind) -> Span {
        Span { first: self.page, count: end.min(self.end) - self.page, kind }
    }
}
