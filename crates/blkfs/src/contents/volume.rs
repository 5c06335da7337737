//! A file system whose extents are looked up.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use blkbtrfs::{FileAt, Finder, Space};
use blkimage::Source;

use super::content::{Content, Holder, Usage};
use super::spans::Spans;
use crate::file_system::FileSystem;
use crate::names::Names;
use crate::owners::Owners;
use crate::signature::has_btrfs;
use crate::visitor::{Extent, ObjectId, Owner};

/// A file system.
pub(super) struct Volume {
    inner: Inner,
    spans: OnceLock<Spans>,
}

enum Inner {
    /// btrfs, which finds the files of a place by itself. Its space is read when it is needed.
    Btrfs(Box<Finder>, OnceLock<Vec<Space>>),
    /// One of this crate, which is read as a whole.
    Walked { file_system: FileSystem, owners: OnceLock<Owners>, names: OnceLock<Names> },
}

impl Volume {
    /// Recognises the file system in `source`.
    pub fn open(source: Arc<dyn Source>) -> Option<Self> {
        let inner = match FileSystem::open(source.clone()).ok()? {
            Some(file_system) => {
                Inner::Walked { file_system, owners: OnceLock::new(), names: OnceLock::new() }
            }
            None if has_btrfs(&source).ok()? => {
                Inner::Btrfs(Box::new(Finder::open(source)?), OnceLock::new())
            }
            None => return None,
        };
        Some(Self { inner, spans: OnceLock::new() })
    }

    pub fn kind(&self) -> &'static str {
        match &self.inner {
            Inner::Btrfs(..) => "btrfs",
            Inner::Walked { file_system, .. } => file_system.kind().name(),
        }
    }

    pub fn remarks(&self) -> Vec<String> {
        match &self.inner {
            Inner::Btrfs(..) => Vec::new(),
            Inner::Walked { file_system, owners, .. } => {
                let mut remarks = file_system.remarks();
                if owners.get().is_some_and(Owners::is_partial) {
                    remarks.push(PARTIAL.to_owned());
                }
                remarks
            }
        }
    }

    /// Adds what is in `length` bytes from `offset` of the file system on.
    pub fn find(&self, offset: u64, length: u64, content: &mut Content) {
        match &self.inner {
            Inner::Btrfs(finder, _) => {
                let found = finder.find(offset, length);
                content.is_partial |= found.is_partial;
                for file in found.files {
                    content.add(of_file(file));
                }
                for (_, usage) in self.usage(offset..offset + length).take(MAX_PARTS) {
                    if usage != Usage::File {
                        let structure = (usage == Usage::Metadata).then_some("tree block");
                        content.add(Holder { structure, ..Holder::new(usage) });
                    }
                }
            }
            Inner::Walked { file_system, owners, names } => {
                let found = read_owners(file_system, owners).find(offset, length, MAX_PARTS);
                content.is_partial |= found.is_partial;
                for extent in found.extents {
                    let known: usize = content.holders.iter().map(|it| it.paths.len()).sum();
                    let left = MAX_PATHS.saturating_sub(known);
                    let paths = |object| paths(file_system, names, object, left);
                    let (holder, has_more_names) = holder(&extent, paths);
                    content.is_partial |= has_more_names;
                    content.add(holder);
                }
            }
        }
    }

    /// Returns what the bytes in a range are used for, by offset.
    pub fn usage(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, Usage)> {
        self.spans.get_or_init(|| self.read_spans()).within(range)
    }

    /// Calls `f` with all bytes of a range and what they belong to, by offset.
    pub fn spans(&self, range: Range<u64>, f: &mut dyn FnMut(u64, u64, Holder)) {
        let (owners, file_system, names) = match &self.inner {
            Inner::Btrfs(finder, _) => return self.spans_of_btrfs(finder, range, f),
            Inner::Walked { file_system, owners, names } => {
                (read_owners(file_system, owners), file_system, names)
            }
        };
        let mut covered = range.start;
        for extent in owners.within(range.start, range.end) {
            if extent.offset > covered {
                f(covered, extent.offset - covered, Holder::new(Usage::Unknown));
            }
            let (holder, _) = holder(&extent, |it| paths(file_system, names, it, MAX_PATHS));
            f(extent.offset, extent.length, holder);
            covered = covered.max(extent.offset + extent.length);
        }
        if covered < range.end {
            f(covered, range.end - covered, Holder::new(Usage::Unknown));
        }
    }

    fn spans_of_btrfs(
        &self,
        finder: &Finder,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, u64, Holder),
    ) {
        for (span, usage) in self.usage(range) {
            if usage != Usage::File {
                let structure = (usage == Usage::Metadata).then_some("tree block");
                let holder = Holder { structure, ..Holder::new(usage) };
                f(span.start, span.end - span.start, holder);
                continue;
            }
            // A run of data may belong to many files, which each sector tells.
            let mut run: Option<(Range<u64>, Vec<FileAt>)> = None;
            let mut start = span.start;
            while start < span.end {
                let end = (start / SECTOR * SECTOR + SECTOR).min(span.end);
                let files = finder.find(start, end - start).files;
                match &mut run {
                    Some((place, before)) if goes_on(before, &files, start - place.start) => {
                        place.end = end;
                    }
                    run => {
                        run.replace((start..end, files)).into_iter().for_each(|it| report(it, f));
                    }
                }
                start = end;
            }
            run.into_iter().for_each(|it| report(it, f));
        }
    }

    fn read_spans(&self) -> Spans {
        match &self.inner {
            Inner::Btrfs(finder, space) => {
                let all = read_space(finder, space).iter();
                Spans::new(all.map(|it| (it.offset..it.offset + it.length, usage_of(it.usage))))
            }
            Inner::Walked { file_system, owners, .. } => {
                let owners = read_owners(file_system, owners);
                let is_certain = !owners.is_partial() && file_system.is_settled();
                Spans::new(owners.extents().iter().map(|it| {
                    let usage = match usage(&it.owner) {
                        // Something that was not read may own it, too.
                        Usage::Free if !is_certain => Usage::Unknown,
                        usage => usage,
                    };
                    (it.offset..it.offset + it.length, usage)
                }))
            }
        }
    }
}

fn read_owners<'a>(file_system: &FileSystem, owners: &'a OnceLock<Owners>) -> &'a Owners {
    owners.get_or_init(|| Owners::read(file_system).unwrap_or_else(|_| Owners::unknown()))
}

fn read_space<'a>(finder: &Finder, space: &'a OnceLock<Vec<Space>>) -> &'a [Space] {
    space.get_or_init(|| finder.space().unwrap_or_default())
}

/// Returns whether files at a place are those before, `distance` bytes further on.
fn goes_on(before: &[FileAt], files: &[FileAt], distance: u64) -> bool {
    let is_next = |(before, file): (&FileAt, &FileAt)| {
        let is_same = (before.inode, &before.paths) == (file.inode, &file.paths);
        is_same && before.offset.checked_add(distance) == Some(file.offset)
    };
    before.len() == files.len() && before.iter().zip(files).all(is_next)
}

/// Reports a run of data to `f`, once for each of its files.
fn report((place, files): (Range<u64>, Vec<FileAt>), f: &mut dyn FnMut(u64, u64, Holder)) {
    let (offset, length) = (place.start, place.end - place.start);
    if files.is_empty() {
        f(offset, length, Holder::new(Usage::File));
    }
    files.into_iter().for_each(|file| f(offset, length, of_file(file)));
}

fn of_file(file: FileAt) -> Holder {
    let (paths, offset, object) = (file.paths, Some(file.offset), Some(file.inode));
    Holder { paths, offset, object, ..Holder::new(Usage::File) }
}

fn usage_of(space: blkbtrfs::Usage) -> Usage {
    match space {
        blkbtrfs::Usage::Data => Usage::File,
        blkbtrfs::Usage::Free => Usage::Free,
        blkbtrfs::Usage::Metadata | blkbtrfs::Usage::Superblock => Usage::Metadata,
    }
}

fn usage(owner: &Owner) -> Usage {
    match owner {
        Owner::File { .. } => Usage::File,
        Owner::Directory { .. } | Owner::Metadata { .. } => Usage::Metadata,
        Owner::Journal => Usage::Journal,
        Owner::Free => Usage::Free,
    }
}

/// Describes the owner of an extent, and whether its object may have more paths than were found.
fn holder(extent: &Extent, paths: impl FnOnce(ObjectId) -> (Vec<Vec<u8>>, bool)) -> (Holder, bool) {
    let mut holder = Holder::new(usage(&extent.owner));
    let object = match extent.owner {
        Owner::File { object, offset } => {
            holder.offset = Some(offset);
            Some(object)
        }
        Owner::Directory { object } => {
            holder.structure = Some("directory");
            Some(object)
        }
        Owner::Metadata { structure, object } => {
            holder.structure = Some(structure);
            object
        }
        Owner::Journal | Owner::Free => None,
    };
    holder.object = object;
    let (paths, is_partial) = object.map(paths).unwrap_or_default();
    holder.paths = paths.into_iter().collect();
    (holder, is_partial)
}

/// Returns the paths of an object, and whether there may be more.
fn paths(
    file_system: &FileSystem,
    names: &OnceLock<Names>,
    object: ObjectId,
    left: usize,
) -> (Vec<Vec<u8>>, bool) {
    let names = names.get_or_init(|| Names::read(file_system).unwrap_or_else(|_| Names::unknown()));
    let mut paths = names.paths(object, left + 1);
    let is_cut = paths.len() > left;
    paths.truncate(left);
    (paths, is_cut || names.is_partial())
}

/// The smallest unit of data in btrfs, in bytes.
const SECTOR: u64 = 4096;

/// Remark on a file system that was looked up.
const PARTIAL: &str = "parts of it could not be read, so that owners may be missing";

/// Maximum number of extents of one range that are looked at for names.
/// Limit in extents.
const MAX_PARTS: usize = 4096;

/// Maximum number of paths that are named for one range.
/// Limit in paths.
const MAX_PATHS: usize = 64;
