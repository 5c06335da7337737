//! Where two sides of a comparison differ.

use blkhash::{BlockSize, Comparison};
use blkmap::Report;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::types;

/// Collects the extents of blocks that differ, or that one side does not know.
pub struct Differences {
    block_size: u64,
    left: u64,
    right: u64,
    extents: Vec<(u64, u64, &'static str)>,
    limit: usize,
    is_beyond_limit: bool,
}

impl Differences {
    /// Begins a comparison of sides of these sizes in bytes. At most `limit` extents are kept: a small map can claim very
    /// many. The default of 262144 is 64 MiB of objects of Python. Each signature states it as a literal, which
    /// alone is shown by `help`.
    pub fn new(block_size: BlockSize, left: u64, right: u64, limit: usize) -> Self {
        let block_size = block_size.into();
        Self { block_size, left, right, extents: Vec::new(), limit, is_beyond_limit: false }
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
        if offset >= end {
            return;
        }
        match self.extents.len() < self.limit {
            true => self.extents.push((offset, end - offset, kind)),
            false => self.is_beyond_limit = true,
        }
    }

    /// Returns the list for Python. More extents than the limit are an error, because a part of them looks like all.
    pub fn into_list(self, py: Python<'_>) -> PyResult<Vec<Bound<'_, PyAny>>> {
        if self.is_beyond_limit {
            let limit = self.limit;
            let reason = format!("more than {limit} extents differ: limit=N returns up to N");
            return Err(PyValueError::new_err(reason));
        }
        self.extents.into_iter().map(|extent| types::DIFFERENCE.make(py, extent)).collect()
    }
}
