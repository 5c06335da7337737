//! The walk over the directories of FAT.

use std::ops::ControlFlow;

use super::boot::{BootSector, Root};
use super::clusters::{
    Chain, Claims, Directories, Entry, Place, Report, Runs, Stop, Structure, entries,
};
use super::entry::{self, Form, LongName, Match};
use super::number::{Numbers, ROOT};
use crate::error::Result;
use crate::kind::Kind;
use crate::visitor::{ObjectId, Owner};
use crate::volume::Volume;

/// The walk over the directories of a volume.
pub(super) struct Walk<'a> {
    runs: &'a Runs,
    numbers: Numbers,
    is_wide: bool,
    claims: Claims,
    pending: Directories,
    long: LongName,
    name: Vec<u8>,
    /// Number and size of the long names whose checksums match.
    matched: (u64, u64),
}

/// Walks over all directories.
///
/// # Errors
///
/// Fails if the visitor stops it.
pub(super) fn walk(
    volume: &Volume,
    boot: &BootSector,
    runs: &Runs,
    report: &mut Report<'_>,
) -> Result<()> {
    let mut walk = Walk {
        runs,
        numbers: Numbers::new(match boot.root {
            Root::Area(start, _) => start,
            Root::Chain(_) => boot.heap.start,
        }),
        is_wide: boot.kind == Kind::Fat32,
        claims: Claims::new(boot.heap.count),
        pending: Directories::default(),
        long: LongName::new(),
        name: Vec::new(),
        matched: (0, 0),
    };
    walk.push_root(boot, report);
    let mut buffer = Vec::new();
    while let Some((object, place)) = walk.pending.pop() {
        let directory = Structure::new("directory", 0).of(object);
        walk.long.reset();
        let mut is_first = object != ROOT;
        entries(volume, runs, place, directory, &mut buffer, report, |report, offset, entry| {
            if std::mem::take(&mut is_first) && !entry::is_self(entry) {
                let directory = Structure { offset, ..directory };
                report.damaged(directory, "begins with another entry than `.`");
                return ControlFlow::Break(());
            }
            walk.entry(object, offset, entry, report)
        })?;
    }
    report.matched("long name", walk.matched.0, walk.matched.1);
    Ok(())
}

impl Walk<'_> {
    fn push_root(&mut self, boot: &BootSector, report: &mut Report<'_>) {
        let place = match boot.root {
            Root::Area(start, length) => {
                report.extent(start, length, Owner::Directory { object: ROOT });
                Place::Area { start, length }
            }
            Root::Chain(first) => {
                let chain = self.follow(ROOT, first, true, report);
                self.check_chain(ROOT, chain, report);
                Place::Chain { first, clusters: chain.clusters }
            }
        };
        self.pending.push(ROOT, place, report);
    }

    fn entry(
        &mut self,
        parent: ObjectId,
        offset: u64,
        entry: &Entry,
        report: &mut Report<'_>,
    ) -> ControlFlow<()> {
        match Form::of(entry) {
            Form::End => return ControlFlow::Break(()),
            Form::Long => self.long.push(entry, offset),
            Form::Deleted | Form::Label | Form::Dots => self.long.reset(),
            Form::Object => {
                let object = self.numbers.at(offset);
                self.make_name(object, offset, entry, report);
                report.entry(parent, object, &self.name);
                self.content(object, offset, entry, report);
            }
        }
        ControlFlow::Continue(())
    }

    fn make_name(&mut self, object: ObjectId, offset: u64, entry: &Entry, report: &mut Report<'_>) {
        self.name.clear();
        match self.long.finish(entry) {
            Match::Equal => {
                self.matched.0 += 1;
                self.matched.1 += self.long.size();
                self.long.append_to(&mut self.name);
            }
            Match::Wrong(sum, stored, start, size) => {
                let name = Structure::new("long name", start).of(object);
                let reason = format!(
                    "checksum {sum:#04x} of the short name at {offset}, stored {stored:#04x}"
                );
                report.mismatch(name, size, reason);
            }
            Match::None => {}
        }
        if self.name.is_empty() {
            entry::short_name(entry, &mut self.name);
        }
    }

    /// Follows the clusters of a file or directory.
    fn content(&mut self, object: ObjectId, offset: u64, entry: &Entry, report: &mut Report<'_>) {
        let is_directory = entry::is_directory(entry);
        let (first, size) = (entry::first_cluster(entry, self.is_wide), entry::size(entry));
        let structure = Structure::new("directory entry", offset).of(object);
        if first == 0 {
            if is_directory {
                report.damaged(structure, "has no clusters, but is a directory");
            } else if size > 0 {
                report.damaged(structure, format!("has no clusters, but {size} bytes"));
            }
            return;
        }
        if !self.runs.heap().contains(first) {
            return report
                .damaged(structure, format!("begins with cluster {first}, which does not exist"));
        }
        let chain = self.follow(object, first, is_directory, report);
        self.check_chain(object, chain, report);
        if is_directory {
            if chain.clusters > 0 {
                let place = Place::Chain { first, clusters: chain.clusters };
                self.pending.push(object, place, report);
            }
        } else if chain.stop == Stop::End && self.runs.heap().size(chain.clusters) < size {
            let length = self.runs.heap().size(chain.clusters);
            report.damaged(structure, format!("has {size} bytes, but its clusters {length}"));
        }
    }

    /// Claims a chain, and reports its clusters as owned by a file or directory.
    fn follow(
        &mut self,
        object: ObjectId,
        first: u32,
        is_directory: bool,
        report: &mut Report<'_>,
    ) -> Chain {
        let (heap, mut done) = (*self.runs.heap(), 0);
        self.claims.follow(self.runs, first, |first, count| {
            let length = heap.size(count.into());
            let owner = match is_directory {
                true => Owner::Directory { object },
                false => Owner::File { object, offset: done },
            };
            report.extent(heap.offset(first), length, owner);
            done = done.saturating_add(length);
        })
    }

    fn check_chain(&self, object: ObjectId, chain: Chain, report: &mut Report<'_>) {
        if let Some(defect) = chain.stop.defect() {
            let offset = self.numbers.offset(object);
            let reason = format!("{defect}, after {} clusters", chain.clusters);
            report.damaged(Structure::new("cluster chain", offset).of(object), reason);
        }
    }
}
