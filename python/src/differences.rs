//! Lists of `Difference`.

use blksum::Difference;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::types;

/// The differences between two images, in order.
pub struct Differences {
    found: Vec<Difference>,
    limit: usize,
    is_beyond_limit: bool,
}

impl Differences {
    /// Keeps at most `limit` differences: a small map can claim very many. The default of 262144 is 64 MiB of objects of
    /// Python. Each signature states it as a literal, which alone is shown by `help`.
    pub fn new(limit: usize) -> Self {
        Self { found: Vec::new(), limit, is_beyond_limit: false }
    }

    /// Appends a difference.
    pub fn push(&mut self, difference: Difference) {
        match self.found.len() < self.limit {
            true => self.found.push(difference),
            false => self.is_beyond_limit = true,
        }
    }

    /// Returns the list for Python. More differences than the limit are an error, because a part of them looks like all.
    pub fn into_list(self, py: Python<'_>) -> PyResult<Vec<Bound<'_, PyAny>>> {
        if self.is_beyond_limit {
            let limit = self.limit;
            let reason = format!("more than {limit} extents differ: limit=N returns up to N");
            return Err(PyValueError::new_err(reason));
        }
        let object =
            |it: Difference| types::DIFFERENCE.make(py, (it.offset, it.length, it.relation.name()));
        self.found.into_iter().map(object).collect()
    }
}
