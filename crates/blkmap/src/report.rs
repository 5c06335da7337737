//! Joins the results of comparisons.

use blkhash::Comparison;

/// Receives the results of a comparison in order, in the longest possible runs.
pub struct Report<'a> {
    /// The run in progress: its first block, number of blocks and kind.
    run: Option<(u64, u64, Comparison)>,
    take: &'a mut (dyn FnMut(u64, u64, Comparison) + Send),
}

impl<'a> Report<'a> {
    /// Passes the number of the first block, the number of blocks and their kind to `take`.
    pub fn new(take: &'a mut (dyn FnMut(u64, u64, Comparison) + Send)) -> Self {
        Self { run: None, take }
    }

    /// Appends blocks.
    pub fn push(&mut self, first: u64, count: u64, kind: Comparison) {
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
