//! The walk over the directories of exFAT.

use std::ops::ControlFlow;

use super::bitmap::{self, Bitmap};
use super::entry_set::{EntrySet, FILE, Stream};
use super::upcase::UpCase;
use crate::error::Result;
use crate::fat::clusters::{
    Claims, Directories, Entry, Place, Report, Runs, Stop, Structure, entries,
};
use crate::fat::{Numbers, ROOT};
use crate::visitor::{ObjectId, Owner};
use crate::volume::Volume;

/// The walk over the directories of a volume.
pub(super) struct Walk<'a> {
    pub runs: &'a Runs,
    pub bitmap: Option<Bitmap>,
    pub upcase: Option<UpCase>,
    pub claims: Claims,
    numbers: Numbers,
    pending: Directories,
    /// Files whose entries have a wrong checksum. They get the clusters that no other file has.
    doubtful: Vec<Content>,
    set: EntrySet,
    name: Vec<u8>,
    /// Number and size of the entry sets whose checksums match.
    matched: (u64, u64),
}

/// The content of a file or directory.
#[derive(Clone, Copy)]
struct Content {
    object: ObjectId,
    /// Offset of its first directory entry.
    entry: u64,
    stream: Stream,
    kind: ContentKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ContentKind {
    File,
    Directory,
    Vendor,
}

impl<'a> Walk<'a> {
    pub fn new(runs: &'a Runs) -> Self {
        Self {
            runs,
            bitmap: None,
            upcase: None,
            claims: Claims::new(runs.heap().count),
            numbers: Numbers::new(runs.heap().start),
            pending: Directories::default(),
            doubtful: Vec::new(),
            set: EntrySet::default(),
            name: Vec::new(),
            matched: (0, 0),
        }
    }

    /// Walks over all directories, from the root on.
    ///
    /// # Errors
    ///
    /// Fails if the visitor stops it.
    pub fn run(&mut self, volume: &Volume, root: Place, report: &mut Report<'_>) -> Result<()> {
        self.pending.push(ROOT, root, report);
        let mut buffer = Vec::new();
        loop {
            let Some((object, place)) = self.pending.pop() else {
                let Some(content) = self.doubtful.pop() else { break };
                self.content(&content, report);
                continue;
            };
            let directory = Structure::new("directory", 0).of(object);
            entries(
                volume,
                self.runs,
                place,
                directory,
                &mut buffer,
                report,
                |report, at, entry| self.entry(object, at, entry, report),
            )?;
            self.finish(object, report);
        }
        report.matched("directory entry set", self.matched.0, self.matched.1);
        Ok(())
    }

    fn entry(
        &mut self,
        parent: ObjectId,
        offset: u64,
        entry: &Entry,
        report: &mut Report<'_>,
    ) -> ControlFlow<()> {
        if !self.set.is_empty() {
            if self.set.push(entry) {
                if self.set.is_whole() {
                    self.finish(parent, report);
                }
                return ControlFlow::Continue(());
            }
            self.finish(parent, report);
        }
        match entry[0] {
            0 => return ControlFlow::Break(()),
            FILE => {
                self.set.begin(entry, offset);
                if self.set.is_whole() {
                    self.finish(parent, report);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// Reports the file whose entries were read, if there is one.
    fn finish(&mut self, parent: ObjectId, report: &mut Report<'_>) {
        if self.set.is_empty() {
            return;
        }
        let object = self.numbers.at(self.set.start);
        let is_sound = self.check(object, report);
        self.name.clear();
        self.set.append_name(&mut self.name);
        report.entry(parent, object, &self.name);
        let kind = if self.set.is_directory() { ContentKind::Directory } else { ContentKind::File };
        let entry = self.set.start;
        let mut contents = Vec::new();
        match self.set.stream() {
            Some(stream) => contents.push(Content { object, entry, stream, kind }),
            None if is_sound => {
                let set = Structure::new("directory entry set", entry).of(object);
                report.damaged(set, "has no stream extension");
            }
            None => {}
        }
        contents.extend(self.set.vendor_streams().map(|stream| Content {
            object,
            entry,
            stream,
            kind: ContentKind::Vendor,
        }));
        self.set.clear();
        if is_sound {
            contents.iter().for_each(|content| self.content(content, report));
        } else if self.doubtful.len() < MAX_DOUBTFUL {
            self.doubtful.extend(contents);
        }
    }

    /// Verifies the checksum of the entries and the hash of the name. Returns whether the first one matches.
    fn check(&mut self, object: ObjectId, report: &mut Report<'_>) -> bool {
        let (start, size) = (self.set.start, self.set.size());
        let structure = Structure::new("directory entry set", start).of(object);
        if !self.set.is_whole() {
            let reason = format!("only {} entries follow each other", size / 32);
            report.mismatch(structure, size, reason);
            return false;
        }
        let (computed, stored) = self.set.checksum();
        if computed != stored {
            let reason = format!("checksum {computed:#06x}, stored {stored:#06x}");
            report.mismatch(structure, size, reason);
            return false;
        }
        let hashes = self.upcase.as_ref().and_then(|upcase| self.set.name_hash(upcase));
        match hashes.filter(|(computed, stored)| computed != stored) {
            Some((computed, stored)) => {
                let reason = format!("name hash {computed:#06x}, stored {stored:#06x}");
                report.mismatch(structure, size, reason);
            }
            None => {
                self.matched.0 += 1;
                self.matched.1 += size;
            }
        }
        true
    }

    /// Follows the clusters of a file or directory.
    fn content(&mut self, content: &Content, report: &mut Report<'_>) {
        let Content { object, entry, stream, kind } = *content;
        let structure = Structure::new("directory entry set", entry).of(object);
        let heap = *self.runs.heap();
        if stream.valid > stream.length {
            let Stream { length, valid, .. } = stream;
            report.damaged(structure, format!("has {length} bytes, of which {valid} are valid"));
        }
        if stream.length == 0 {
            return;
        }
        if !heap.contains(stream.first) {
            let reason = format!("begins with cluster {}, which does not exist", stream.first);
            return report.damaged(structure, reason);
        }
        let needed = stream.length.div_ceil(heap.cluster_size);
        let clusters = if stream.is_row {
            self.row(content, needed, report)
        } else {
            self.chain(content, needed, report)
        };
        if kind == ContentKind::Directory && clusters > 0 {
            let (first, clusters) = (stream.first, clusters.min(needed));
            let place = match stream.is_row {
                true => Place::Row { first, clusters },
                false => Place::Chain { first, clusters },
            };
            self.pending.push(object, place, report);
        }
    }

    /// Claims clusters that follow each other. Returns their number.
    fn row(&mut self, content: &Content, needed: u64, report: &mut Report<'_>) -> u64 {
        let structure = Structure::new("directory entry set", content.entry).of(content.object);
        let first = content.stream.first;
        let existing = self.runs.heap().limit() - first;
        let count = u32::try_from(needed).map_or(existing, |needed| needed.min(existing));
        let claimed = self.claims.claim(first, count);
        self.part(content, 0, first, claimed, report);
        if claimed < count {
            let reason = format!("cluster {} is already in use by another file", first + claimed);
            report.damaged(structure, reason);
        } else if u64::from(count) < needed {
            report.damaged(structure, "has more clusters than exist");
        }
        self.check_allocated(content, &[(first, claimed)], report);
        claimed.into()
    }

    /// Claims a chain of clusters. Returns their number.
    fn chain(&mut self, content: &Content, needed: u64, report: &mut Report<'_>) -> u64 {
        let mut parts = Vec::new();
        let chain = self.claims.follow(self.runs, content.stream.first, |first, count| {
            parts.push((first, count));
        });
        let mut done = 0;
        for (first, count) in &parts {
            self.part(content, done, *first, *count, report);
            done += u64::from(*count);
        }
        let chain_structure = Structure::new("cluster chain", content.entry).of(content.object);
        if let Some(defect) = chain.stop.defect() {
            report.damaged(chain_structure, format!("{defect}, after {done} clusters"));
        } else if chain.stop == Stop::End && done != needed {
            report.damaged(chain_structure, format!("has {done} clusters instead of {needed}"));
        }
        self.check_allocated(content, &parts, report);
        done
    }

    /// Reports clusters of a file or directory, of which `done` are before them.
    fn part(&self, content: &Content, done: u64, first: u32, count: u32, report: &mut Report<'_>) {
        let (heap, object) = (self.runs.heap(), content.object);
        let owner = match content.kind {
            ContentKind::File => Owner::File { object, offset: heap.size(done) },
            ContentKind::Directory => Owner::Directory { object },
            ContentKind::Vendor => {
                Owner::Metadata { structure: "vendor allocation", object: Some(object) }
            }
        };
        report.extent(heap.offset(first), heap.size(count.into()), owner);
    }

    /// Reports a cluster of a file or directory that is free according to the allocation bitmap.
    fn check_allocated(&self, content: &Content, parts: &[(u32, u32)], report: &mut Report<'_>) {
        let Some(bitmap) = &self.bitmap else { return };
        if let Some(cluster) =
            parts.iter().find_map(|(first, count)| bitmap.first_free(*first, *count))
        {
            let structure = Structure::new(bitmap::NAME, content.entry).of(content.object);
            report.damaged(structure, format!("cluster {cluster} is free, but in use by a file"));
        }
    }
}

/// Maximum number of files with wrong checksums whose clusters are reported.
/// Limit in files.
const MAX_DOUBTFUL: usize = 1 << 16;
