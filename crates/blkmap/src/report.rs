//! Joins the results of comparisons.

use std::ops::Range;

use blkhash::Comparison;

/// Receives the results of a comparison in order, in the longest possible runs.
pub struct Report<'a> {
    /// The run in progress: its first block, number of blocks and kind.
    run: Option<(u64, u64, Comparison)>,
    take: &'a mut (dyn FnMut(u64, u64, Comparison) + Send),
    /// Finds the first blocks in a range that could not be read.
    unreadable: Option<&'a mut FindUnreadable<'a>>,
}

/// Returns the first blocks in a range that could not be read.
pub type FindUnreadable<'a> = dyn FnMut(Range<u64>) -> Option<Range<u64>> + Send + 'a;

impl<'a> Report<'a> {
    /// Passes the number of the first block, the number of blocks and their kind to `take`.
    pub fn new(take: &'a mut (dyn FnMut(u64, u64, Comparison) + Send)) -> Self {
        Self { run: None, take, unreadable: None }
    }

    /// Makes the blocks that `find` returns [`Comparison::Unreadable`], whatever they are pushed as. It is asked about
    /// blocks in order.
    #[must_use]
    pub fn with_unreadable(self, find: &'a mut FindUnreadable<'a>) -> Self {
        Self { unreadable: Some(find), ..self }
    }

    /// Appends blocks.
    pub fn push(&mut self, first: u64, count: u64, kind: Comparison) {
        let (mut at, end) = (first, first + count);
        while at < end
            && let Some(unread) = self.unreadable.as_mut().and_then(|find| find(at..end))
        {
            self.join(at, unread.start - at, kind);
            self.join(unread.start, unread.end - unread.start, Comparison::Unreadable);
            at = unread.end;
        }
        self.join(at, end - at, kind);
    }

    fn join(&mut self, first: u64, count: u64, kind: Comparison) {
        if count == 0 {
            return;
        }
        match &mut self.run {
            Some((start, length, last)) if *last == kind && *start + *length == first => {
                *length += count;
            }
            _ => {
                self.end();
                self.run = Some((first, count, kind));
            }
        }
    }

    /// Passes on the last run.
    pub fn end(&mut self) {
        if let Some((first, count, kind)) = self.run.take() {
            (self.take)(first, count, kind);
        }
    }
}
