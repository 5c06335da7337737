//! Where two sides of a comparison differ.

use blkhash::{BlockSize, Comparison};
use blkmap::Report;
use pyo3::prelude::*;

use crate::types;

/// Collects the extents of blocks that differ, or that one side does not know.
pub struct Differences {
    block_size: u64,
    left: u64,
    right: u64,
    extents: Vec<(u64, u64, &'static str)>,
}

impl Differences {
    /// Begins a comparison of sides of these sizes in bytes.
    pub fn new(block_size: BlockSize, left: u64, right: u64) -> Self {
        Self { block_size: block_size.into(), left, right, extents: Vec::new() }
    }

    /// Lets `compare` report the blocks that both sides have.
    pub fn collect<E>(
        mut self,
        compare: impl FnOnce(Report<'_>) -> Result<(), E>,
    ) -> Result<Self, E> {
        compare(Report::new(&mut |first, count, comparison| {
            let kind = match comparison {
                Comparison::Equal | Comparison::Zeros => return,
                Comparison::Changed => "changed",
                Comparison::Zeroed => "zeroed",
                Comparison::Written => "written",
                Comparison::Unknown => "unknown",
            };
            self.push(first, first.saturating_add(count), kind);
        }))?;
        let end = |size: u64| size.div_ceil(self.block_size);
        let (left, right) = (end(self.left), end(self.right));
        let kind = if left > right { "left-only" } else { "right-only" };
        self.push(left.min(right), left.max(right), kind);
        Ok(self)
    }

    /// Adds the blocks from `first` to the one before `end`.
    fn push(&mut self, first: u64, end: u64, kind: &'static str) {
        let size = self.left.max(self.right);
        let at = |block: u64| block.saturating_mul(self.block_size).min(size);
        let (offset, end) = (at(first), at(end));
        if offset < end {
            self.extents.push((offset, end - offset, kind));
        }
    }

    /// Returns the list for Python.
    pub fn into_list(self, py: Python<'_>) -> PyResult<Vec<Bound<'_, PyAny>>> {
        self.extents.into_iter().map(|extent| types::DIFFERENCE.make(py, extent)).collect()
    }
}
