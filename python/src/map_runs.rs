//! The iterator over the blocks of a map.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use blkmap::BlockRun;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::errors;
use crate::open_map::OpenMap;
use crate::process::Owned;
use crate::types;

/// An iterator over runs of blocks. It reads some of them at a time, because an iterator of Python cannot borrow the
/// map.
#[pyclass(frozen, module = "blkhash._blkhash", name = "_Runs")]
pub struct Runs {
    map: Arc<Owned<OpenMap>>,
    /// Locked only by threads that are attached to the interpreter.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of the page after those that were read.
    page: u64,
    runs: VecDeque<Run>,
}

/// Consecutive blocks of one kind.
struct Run {
    first: u64,
    count: u64,
    kind: Kind,
}

enum Kind {
    /// Digests, one after the other.
    Data(Vec<u8>),
    Zero,
    Unknown,
}

#[pymethods]
impl Runs {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let opened = self.map.get(py, "map")?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.runs.is_empty() {
            let page = state.page;
            // Another thread that uses the iterator meanwhile reads the same.
            drop(state);
            let read = py.detach(|| read(&opened.map, page));
            let (page, runs) = read.map_err(|error| errors::of_map(py, &error, &opened.name))?;
            state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.page < page {
                *state = State { page, runs };
            }
        }
        let run = state.runs.pop_front();
        drop(state);
        run.map(|run| run.into_object(py, &opened.map)).transpose()
    }
}

impl Runs {
    pub fn new(map: Arc<Owned<OpenMap>>) -> Self {
        Self { map, state: Mutex::default() }
    }
}

impl Run {
    /// Returns the object for Python.
    fn into_object<'py>(self, py: Python<'py>, map: &blkmap::Map) -> PyResult<Bound<'py, PyAny>> {
        let (block_size, size) = (u64::from(map.header().block_size), map.commit().image_size());
        let at = |block: u64| block.saturating_mul(block_size).min(size);
        let offset = at(self.first);
        let length = at(self.first.saturating_add(self.count)) - offset;
        let (kind, digests) = match self.kind {
            Kind::Zero => ("zero", None),
            Kind::Unknown => ("unknown", None),
            Kind::Data(digests) => {
                let shape = (self.count, map.header().algorithm.digest_size());
                let view = PyMemoryView::from(&PyBytes::new(py, &digests))?;
                ("data", Some(view.call_method1("cast", ("B", shape))?))
            }
        };
        types::RUN.make(py, (offset, length, kind, digests))
    }
}

/// Reads runs from a page on, and returns them with the page after them.
fn read(map: &blkmap::Map, first: u64) -> blkmap::Result<(u64, VecDeque<Run>)> {
    let mut runs = VecDeque::new();
    let (mut page, mut bytes) = (first, 0);
    if first >= map.pages() {
        return Ok((page, runs));
    }
    let (entry_size, digest_size) =
        (map.header().entry_size(), map.header().algorithm.digest_size());
    let mut blocks = map.blocks_of(first..map.pages())?;
    while runs.len() < MAX_RUNS && bytes < MAX_BYTES {
        let Some(run) = blocks.next(u64::MAX)? else { break };
        let run = match run {
            BlockRun::Zeros { first, count } => Run { first, count, kind: Kind::Zero },
            BlockRun::Unknown { first, count } => Run { first, count, kind: Kind::Unknown },
            BlockRun::Digests { first, entries } => {
                let count = (entries.len() / entry_size) as u64;
                let digests = entries.chunks_exact(entry_size);
                let digests = digests.flat_map(|entry| &entry[..digest_size]).copied().collect();
                bytes += entries.len();
                Run { first, count, kind: Kind::Data(digests) }
            }
        };
        // Runs are whole pages, apart from the last one.
        page = (run.first + run.count).div_ceil(map.header().blocks_per_page());
        runs.push_back(run);
    }
    Ok((page, runs))
}

/// Runs that are read at a time. Each time, the directory is read up to the first of them.
const MAX_RUNS: usize = 1 << 12;

/// Bytes of digests that are read at a time, apart from the last run.
const MAX_BYTES: usize = 1 << 20;
