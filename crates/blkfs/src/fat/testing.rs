//! An image in memory, and everything that a walk over it reports.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use blkimage::{Extent as ImageExtent, ExtentKind, Source};

use crate::error::Result;
use crate::file_system::FileSystem;
use crate::visitor::{Entry, Extent, Mismatch, ObjectId, Owner, Problem, Visitor, Wanted};

struct Memory(Vec<u8>);

impl Source for Memory {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn extent(&self, offset: u64, limit: u64) -> blkimage::Result<ImageExtent> {
        let length = limit.min(self.size() - offset);
        Ok(ImageExtent { offset, length, kind: ExtentKind::Data })
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> blkimage::Result<()> {
        buf.copy_from_slice(&self.0[offset as usize..][..buf.len()]);
        Ok(())
    }
}

/// Everything that a walk reports.
#[derive(Default)]
pub(crate) struct Seen {
    pub extents: Vec<Extent>,
    pub matched: BTreeMap<&'static str, u64>,
    pub mismatches: Vec<Mismatch>,
    pub names: Vec<(ObjectId, ObjectId, String)>,
    pub problems: Vec<Problem>,
}

impl Seen {
    /// Returns offsets and lengths in sectors, and the owners.
    pub fn sectors(&self) -> Vec<(u64, u64, Owner)> {
        let mut extents = self.extents.clone();
        extents.sort_by_key(|extent| extent.offset);
        extents.iter().map(|it| (it.offset / 512, it.length / 512, it.owner)).collect()
    }

    /// Returns the structures that do not match.
    pub fn wrong(&self) -> Vec<&'static str> {
        self.mismatches.iter().map(|it| it.structure).collect()
    }

    /// Returns what is wrong with structures.
    pub fn damaged(&self) -> Vec<&str> {
        self.problems.iter().map(|it| it.reason.as_str()).collect()
    }
}

impl Visitor for Seen {
    fn extent(&mut self, extent: Extent) {
        self.extents.push(extent);
    }

    fn matched(&mut self, structure: &'static str, count: u64, _: u64) {
        *self.matched.entry(structure).or_default() += count;
    }

    fn mismatch(&mut self, mismatch: Mismatch) {
        self.mismatches.push(mismatch);
    }

    fn entry(&mut self, entry: Entry<'_>) {
        let name = String::from_utf8_lossy(entry.name).into_owned();
        self.names.push((entry.parent, entry.object, name));
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn advance(&mut self, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

pub(crate) fn open(image: &[u8]) -> Result<Option<FileSystem>> {
    FileSystem::open(Arc::new(Memory(image.to_vec())))
}

/// Walks over a file system that must be recognised.
pub(crate) fn walk(image: &[u8]) -> Seen {
    let file_system = open(image).unwrap().expect("a file system");
    let mut seen = Seen::default();
    let wanted = Wanted { extents: true, checks: true, names: true };
    file_system.walk(wanted, &mut seen).unwrap();
    seen
}

pub(crate) fn put(image: &mut [u8], at: usize, bytes: &[u8]) {
    image[at..][..bytes.len()].copy_from_slice(bytes);
}
