//! Lists of `Difference`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use blkfs::{Contents, Holder, Usage};
use blkhash::BlockSize;
use blkimage::Source;
use blksum::{Difference, Relation};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::open::Opened;
use crate::types;

/// The differences between two images, in order.
pub struct Differences {
    found: Vec<Difference>,
    limit: usize,
    is_beyond_limit: bool,
    uses: Option<Uses>,
}

/// What is to be found out about differences besides their places.
#[derive(Clone, Copy)]
pub struct Asked {
    pub ignore_free: bool,
    pub owners: bool,
}

/// What differing blocks are used for.
struct Uses {
    disk: Arc<dyn Source>,
    contents: Contents,
    asked: Asked,
    block_size: u64,
    counts: [u64; Usage::ALL.len()],
    /// Number of blocks of free space that differ and are left out.
    ignored: u64,
    /// What each difference belongs to.
    owners: Vec<Vec<Holder>>,
}

impl Differences {
    /// Keeps at most `limit` differences: a small map can claim very many. The default of 262144 is 64 MiB of objects of
    /// Python. Each signature states it as a literal, which alone is shown by `help`.
    pub fn new(limit: usize) -> Self {
        Self { found: Vec::new(), limit, is_beyond_limit: false, uses: None }
    }

    /// Looks up what the blocks are used for, if that is asked for, in the first of these images that has a file system.
    pub fn with_uses(self, images: &[&Opened], block_size: BlockSize, asked: Asked) -> Self {
        if !asked.owners && !asked.ignore_free {
            return self;
        }
        let opened = images.iter().map(|image| {
            let disk: Arc<dyn Source> = Arc::new(image.selected.source().clone());
            (Contents::of(&disk), disk)
        });
        let found = opened.into_iter().find(|(contents, _)| contents.has_files());
        let uses = found.map(|(contents, disk)| Uses {
            disk,
            contents,
            asked,
            block_size: block_size.get() as u64,
            counts: Default::default(),
            ignored: 0,
            owners: Vec::new(),
        });
        Self { uses, ..self }
    }

    /// Appends a difference, but for the free space in it that is ignored.
    pub fn push(&mut self, difference: Difference) {
        let Some(uses) = self.uses.as_mut().filter(|_| difference.relation.is_different()) else {
            return self.keep(difference);
        };
        for part in uses.sort_out(difference) {
            self.keep(part);
        }
    }

    fn keep(&mut self, difference: Difference) {
        let has_room = self.found.len() < self.limit;
        match self.found.last_mut() {
            Some(last)
                if last.relation == difference.relation
                    && last.offset + last.length == difference.offset =>
            {
                last.length += difference.length;
                last.blocks += difference.blocks;
            }
            _ if has_room => self.found.push(difference),
            _ => self.is_beyond_limit = true,
        }
    }

    /// Looks up the owners, if they are asked for. Fails if the image changed since it was opened.
    pub fn finish(mut self) -> blkimage::Result<Self> {
        if let Some(uses) = self.uses.as_mut().filter(|_| !self.is_beyond_limit) {
            if uses.asked.owners {
                let find = |it: &Difference| match it.relation.is_different() {
                    true => uses.contents.find(it.offset, it.length).holders,
                    false => Vec::new(),
                };
                uses.owners = self.found.iter().map(find).collect();
            }
            // The bytes of the file systems were read, and may have changed since.
            uses.disk.check_unchanged()?;
        }
        Ok(self)
    }

    /// Returns the list for Python. More differences than the limit are an error, because a part of them looks like all.
    pub fn into_list(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        if self.is_beyond_limit {
            let limit = self.limit;
            let reason = format!("more than {limit} extents differ: limit=N returns up to N");
            return Err(PyValueError::new_err(reason));
        }
        let object =
            |it: Difference| types::DIFFERENCE.make(py, (it.offset, it.length, it.relation.name()));
        let list = self.found.into_iter().map(object).collect::<PyResult<Vec<_>>>()?;
        let Some(uses) = self.uses else { return types::DIFFERENCES.make(py, (list,)) };
        let count = |usage: Usage| uses.counts[usage as usize];
        let owners = match uses.asked.owners {
            true => {
                let all = uses.owners.iter().map(|holders| owners(py, holders));
                Some(all.collect::<PyResult<Vec<_>>>()?)
            }
            false => None,
        };
        let fields = (
            list,
            count(Usage::File),
            count(Usage::Metadata),
            count(Usage::Journal),
            count(Usage::Free),
            count(Usage::Unknown),
            uses.ignored,
            owners,
            PyTuple::new(py, uses.contents.remarks())?,
        );
        types::DIFFERENCES.make(py, fields)
    }
}

impl Uses {
    /// Counts the blocks of a difference by their use. Returns the parts that are kept.
    fn sort_out(&mut self, difference: Difference) -> Vec<Difference> {
        let Difference { offset, length, relation, .. } = difference;
        let end = offset.saturating_add(length);
        let can_ignore = self.asked.ignore_free
            && matches!(relation, Relation::Changed | Relation::Zeroed | Relation::Written);
        let mut kept = Vec::new();
        for (blocks, usage) in self.contents.usage(offset, length, self.block_size) {
            let count = blocks.end - blocks.start;
            if can_ignore && usage == Usage::Free {
                self.ignored += count;
                continue;
            }
            self.counts[usage as usize] += count;
            let start = blocks.start.saturating_mul(self.block_size).max(offset);
            let length = blocks.end.saturating_mul(self.block_size).min(end) - start;
            kept.push(Difference { offset: start, length, blocks: count, relation });
        }
        kept
    }
}

/// Returns what a difference belongs to, as a tuple.
fn owners<'py>(py: Python<'py>, holders: &[Holder]) -> PyResult<Bound<'py, PyTuple>> {
    let owner = |it: &Holder| {
        let names = PyTuple::new(py, it.paths.iter().map(|path| OsStr::from_bytes(path)))?;
        types::OWNER.make(py, (it.usage.name(), it.structure, names, it.object, it.offset))
    };
    PyTuple::new(py, holders.iter().map(owner).collect::<PyResult<Vec<_>>>()?)
}
