//! Partitions, files, metadata and free space in ranges that do not match.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use blkfs::{Content, Holder, Usage};
use blkimage::Source;

use crate::quote;

/// The contents of an image, which are read when the first range is looked up.
#[derive(Default)]
pub struct Contents {
    disks: Vec<Arc<dyn Source>>,
    found: OnceCell<blkfs::Contents>,
}

impl Contents {
    /// Prepares to name the files of the first of these disks that has a file system. Without any disk, nothing is known.
    pub fn of(disks: Vec<Arc<dyn Source>>) -> Self {
        Self { disks, found: OnceCell::new() }
    }

    /// Returns whether there is an image.
    pub fn has_disk(&self) -> bool {
        !self.disks.is_empty()
    }

    /// Returns whether there is a file system.
    pub fn has_files(&self) -> bool {
        self.has_disk() && self.found().has_files()
    }

    /// Returns what is in a range.
    pub fn find(&self, offset: u64, length: u64) -> Content {
        if self.has_disk() { self.found().find(offset, length) } else { Content::unknown() }
    }

    /// Returns the partition at `offset`, for a range of which only some unknown bytes matter.
    pub fn partition(&self, offset: u64) -> Content {
        self.found().partition(offset)
    }

    /// Returns what the blocks in a range are used for.
    pub fn usage(&self, offset: u64, length: u64, block: u64) -> Vec<(Range<u64>, Usage)> {
        self.found().usage(offset, length, block)
    }

    /// Returns the remarks on the state of the file systems, if any was looked up.
    pub fn remarks(&self) -> Vec<String> {
        let all = self.found.get().map(blkfs::Contents::remarks).unwrap_or_default();
        let worded = |(partition, remark): (Option<u32>, String)| match partition {
            Some(number) => format!("note: partition {number}: {remark}"),
            None => format!("note: {remark}"),
        };
        all.into_iter().map(worded).collect()
    }

    fn found(&self) -> &blkfs::Contents {
        self.found.get_or_init(|| {
            let mut all = self.disks.iter().map(blkfs::Contents::of);
            let first = all.next().unwrap_or_default();
            if first.has_files() {
                return first;
            }
            all.find(blkfs::Contents::has_files).unwrap_or(first)
        })
    }
}

/// What differing blocks of an image are used for, and the first files and structures among them.
#[derive(Default)]
pub struct Used {
    pub usages: Usages,
    /// Names of the first files and structures, as in a sentence.
    names: Vec<String>,
    /// What the blocks belong to, each once.
    pub owners: Vec<Holder>,
    /// Whether they may belong to more.
    pub has_more_owners: bool,
    /// Remarks on the state of the file systems.
    pub remarks: Vec<String>,
}

impl Used {
    /// Looks up runs of blocks by their first number and their count.
    pub fn of(disk: Arc<dyn Source>, runs: &[(u64, u64)], block: u64) -> Self {
        let contents = Contents::of(vec![disk]);
        let mut used = Self::default();
        if !contents.has_files() {
            return used;
        }
        for (first, count) in runs {
            let (offset, length) = (first.saturating_mul(block), count.saturating_mul(block));
            for (blocks, usage) in contents.usage(offset, length, block) {
                used.usages.add(usage, blocks.end - blocks.start);
            }
            if used.names.len() <= MAX_NAMES || used.owners.len() < MAX_OWNERS {
                used.add(contents.find(offset, length));
            } else {
                used.has_more_owners = true;
            }
        }
        used.remarks = contents.remarks();
        used
    }

    fn add(&mut self, content: Content) {
        let (structures, files) = names(&content);
        for name in structures.into_iter().chain(files) {
            if self.names.len() <= MAX_NAMES && !self.names.contains(&name) {
                self.names.push(name);
            }
        }
        self.has_more_owners |= content.is_partial;
        for holder in content.holders {
            let is_same = |it: &Holder| {
                let of = |it: &Holder| (it.usage, it.structure, it.object);
                of(it) == of(&holder) && it.paths == holder.paths
            };
            if self.owners.iter().any(is_same) {
                continue;
            }
            match self.owners.len() < MAX_OWNERS {
                true => self.owners.push(holder),
                false => self.has_more_owners = true,
            }
        }
    }

    /// Lists the uses, files and structures, as in `3 in files, 30 in free space, with parts of a, b`. Empty if nothing is known.
    pub fn text(&self) -> String {
        let names = self.names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>();
        let more = if self.names.len() > MAX_NAMES { ", more" } else { "" };
        match names.as_slice() {
            [] => self.usages.text(),
            names => format!("{}, with parts of {}{more}", self.usages.text(), names.join(", ")),
        }
    }
}

/// Maximum number of files and structures that are named in a sentence.
const MAX_NAMES: usize = 4;

/// Maximum number of owners of many ranges that are named.
/// Limit in owners.
const MAX_OWNERS: usize = 16;

/// Names the files and structures for a line of text. It is empty if there are none.
pub fn text(content: &Content) -> String {
    let (structures, files) = names(content);
    let mut names = [structures, files].concat();
    if names.is_empty() && content.holders.iter().any(|it| it.usage == Usage::Free) {
        names.push("free space".to_owned());
    }
    if content.is_partial && !names.is_empty() {
        names.push("more".to_owned());
    }
    names.join(", ")
}

/// Returns the names of the structures, and of the files.
fn names(content: &Content) -> (Vec<String>, Vec<String>) {
    let kind = content.file_system.unwrap_or("the file system");
    let is_used = |it: &&Holder| !matches!(it.usage, Usage::Free | Usage::Unknown);
    let (files, others): (Vec<_>, Vec<_>) =
        content.holders.iter().filter(is_used).partition(|it| it.usage == Usage::File);
    let texts = |of: Vec<&Holder>| of.into_iter().map(|it| holder_text(it, kind)).collect();
    (texts(others), texts(files))
}

/// Names the file or structure that bytes belong to.
pub fn holder_text(holder: &Holder, kind: &str) -> String {
    let paths: Vec<_> = holder.paths.iter().map(|path| quote::name(path)).collect();
    let paths = paths.join(", ");
    match (holder.usage, holder.structure) {
        (Usage::File, _) if paths.is_empty() => "a file without a name".to_owned(),
        (Usage::File, _) => paths,
        (Usage::Metadata, Some("directory")) if !paths.is_empty() => format!("directory {paths}"),
        (Usage::Metadata, Some(table)) if table.ends_with("partition table") => table.to_owned(),
        (Usage::Metadata, Some(structure)) if paths.is_empty() => format!("{structure} of {kind}"),
        (Usage::Metadata, Some(structure)) => format!("{structure} of {paths}"),
        (Usage::Metadata, None) => format!("metadata of {kind}"),
        (Usage::Journal, _) => format!("journal of {kind}"),
        (Usage::Free, _) => "free space".to_owned(),
        (Usage::Unknown, _) => "unknown".to_owned(),
    }
}

/// Number of blocks by what they are used for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usages([u64; Usage::ALL.len()]);

impl Usages {
    pub fn add(&mut self, usage: Usage, count: u64) {
        self.0[usage as usize] += count;
    }

    pub fn of(&self, usage: Usage) -> u64 {
        self.0[usage as usize]
    }

    /// Returns the number of all blocks.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Lists the uses that occur, as in `3 in files, 30 in free space`.
    pub fn text(&self) -> String {
        let worded = |usage| match usage {
            Usage::File => "in files",
            Usage::Metadata => "in metadata",
            Usage::Journal => "in the journal",
            Usage::Unknown => "elsewhere",
            Usage::Free => "in free space",
        };
        let found = Usage::ALL.into_iter().filter(|it| self.of(*it) > 0);
        let parts: Vec<_> = found.map(|it| format!("{} {}", self.of(it), worded(it))).collect();
        parts.join(", ")
    }
}
