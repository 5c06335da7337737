//! Compares inodes with their names and sizes, which are stored in several items.
//!
//! All comparisons are sums that are linear in items. Each leaf has one sum, a tree adds the sums of its leaves, and a
//! leaf shared by snapshots is examined once. The sum of a correct tree is zero. A tree with another sum is read again
//! to find the wrong inode.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::hasher::Hasher;
use super::names::{entries, entry, names};
use super::promises::{FILE, FOLDER, InodeItem, SYMLINK, promises};
use super::{orphans, subvolumes};
use crate::backref::file_extent::counted_bytes;
use crate::bytes::u32_at;
use crate::error::Result;
use crate::rules::kind_of_mode;
use crate::tree::key::kind;
use crate::tree::{Blocks, Cursor, Expected, Key, TreeBlock, TreeRoot, object, root_block};
use crate::verify::finding::Subject;
use crate::verify::job::Job;

/// Sums of the leaves of file trees, and the sum of the root tree.
#[derive(Default)]
pub(super) struct Links {
    leaves: Mutex<HashMap<u64, u64>>,
    roots: AtomicU64,
}

impl Links {
    pub(super) fn take_files(&self, hasher: &Hasher, leaf: &TreeBlock) {
        let mut sum = 0u64;
        for (key, bytes) in leaf.items() {
            sum = sum.wrapping_add(promises(hasher, key, bytes).unwrap_or_default());
        }
        self.leaves.lock().expect("no thread panicked").insert(leaf.logical(), sum);
    }

    /// Adds the names of subvolumes, each of which is stored twice.
    pub(super) fn take_roots(&self, hasher: &Hasher, leaf: &TreeBlock) {
        for (key, bytes) in leaf.items() {
            let sum = match key.kind {
                kind::ROOT_REF => hasher.hash((key.object, key.offset, bytes)),
                kind::ROOT_BACKREF => hasher.hash((key.offset, key.object, bytes)).wrapping_neg(),
                _ => continue,
            };
            self.roots.fetch_add(sum, Ordering::Relaxed);
        }
    }

    /// Reports each inode whose items contradict each other.
    pub(super) fn compare(&self, job: &Job<'_>, hasher: &Hasher, trees: &[(u64, TreeRoot)]) {
        if self.roots.load(Ordering::Relaxed) != 0 {
            let reason = "names of subvolumes and the references back differ";
            job.report_contradiction(Subject::Tree(object::ROOT_TREE), None, 0, reason);
        }
        // Unreadable blocks were already reported.
        let _ = subvolumes::compare(job);
        let leaves = self.leaves.lock().expect("no thread panicked");
        let mut budget = Budget { trees: MAX_LOCATED, names: MAX_NAMES, left: MAX_LEFT };
        let mut sums = Sums { job, leaves: &leaves, nodes: HashMap::new() };
        for &(tree, root) in trees {
            // Unreadable blocks were already reported.
            let sum = sums.of(&root_block(tree, root)).unwrap_or(0);
            let left = &mut budget.left;
            if sum == 0 || orphans::sum(job, hasher, (tree, root), left).is_ok_and(|it| it == sum) {
                continue;
            }
            let located = match budget.trees.checked_sub(1) {
                None => Ok(0),
                Some(left) => {
                    budget.trees = left;
                    locate(job, hasher, (tree, root), &mut budget.names)
                }
            };
            if !matches!(located, Ok(count) if count > 0) {
                let reason = "names of files and the references back differ";
                job.report_contradiction(Subject::Tree(tree), None, 0, reason);
            }
        }
    }
}

/// Remaining effort for finding the wrong items.
struct Budget {
    trees: u64,
    names: u64,
    /// Items of inodes that are being removed.
    left: u64,
}

/// Sums over the leaves below nodes. Nodes that several trees share are summed once.
struct Sums<'a> {
    job: &'a Job<'a>,
    leaves: &'a HashMap<u64, u64>,
    nodes: HashMap<u64, u64>,
}

impl Sums<'_> {
    /// Returns the sum below a block. The depth is bounded, because the level of a child is one
    /// less.
    fn of(&mut self, block: &Expected) -> Result<u64> {
        if block.level == 0 {
            return Ok(self.leaves.get(&block.logical).copied().unwrap_or_default());
        }
        if let Some(sum) = self.nodes.get(&block.logical) {
            return Ok(*sum);
        }
        let node = self.job.filesystem.block(block)?;
        let mut sum = 0u64;
        for index in 0..node.count() {
            let Some(child) = node.child(index, block) else { break };
            sum = sum.wrapping_add(self.of(&child)?);
        }
        self.nodes.insert(block.logical, sum);
        Ok(sum)
    }
}

/// Reads a tree with a wrong sum again and reports the wrong inodes. Returns their number.
fn locate(
    job: &Job<'_>,
    hasher: &Hasher,
    (tree, root): (u64, TreeRoot),
    left: &mut u64,
) -> Result<u64> {
    let mut cursor = Cursor::seek(job.filesystem, tree, root, Key::new(0, 0, 0))?;
    let mut count = 0;
    let mut sums = Inode::default();
    while let Some((key, bytes)) = cursor.item() {
        if key.object != sums.number {
            count += sums.report(job, tree);
            sums = Inode { number: key.object, ..Inode::default() };
        }
        sums.take(hasher, key, bytes);
        if key.kind == kind::INODE && sums.said.as_ref().is_some_and(|said| said.links == 0) {
            sums.is_removed = orphans::has(job, (tree, root), key.object)?;
        }
        if key.kind == kind::DIR_INDEX && !sums.is_removed && *left > 0 {
            count += u64::from(!leads_back(job, (tree, root), key, bytes, left)?);
        }
        cursor.advance()?;
    }
    Ok(count + sums.report(job, tree))
}

/// Items of one inode, which are compared with each other.
#[derive(Default)]
struct Inode {
    number: u64,
    said: Option<InodeItem>,
    /// Whether its items are being removed, see [`orphans`].
    is_removed: bool,
    stored: u64,
    names: u64,
    entries: u64,
    /// Sum over entries by name minus entries by index.
    pairs: u64,
}

impl Inode {
    fn take(&mut self, hasher: &Hasher, key: Key, bytes: &[u8]) {
        let mut add = |location: Key, format: u8, name: &[u8], times: u64| {
            self.entries = self.entries.wrapping_add(name.len() as u64);
            let pair = hasher.hash((location, format, name)).wrapping_mul(times);
            self.pairs = self.pairs.wrapping_add(pair);
        };
        match key.kind {
            kind::INODE => self.said = InodeItem::parse(bytes),
            kind::INODE_REF | kind::INODE_EXTREF => self.names += names(key, bytes).count() as u64,
            kind::DIR_INDEX if !self.is_removed => {
                if let Some((location, format, name)) = entry(bytes) {
                    add(location, format, name, u64::MAX);
                }
            }
            kind::DIR_ITEM => {
                for (location, format, name) in entries(bytes) {
                    add(location, format, name, 1);
                }
            }
            kind::FILE_EXTENT => {
                self.stored = self.stored.wrapping_add(counted_bytes(bytes).unwrap_or_default());
            }
            _ => {}
        }
    }

    /// Reports a contradiction, if any. Returns the number of reports.
    fn report(&self, job: &Job<'_>, tree: u64) -> u64 {
        let inode = self.number;
        let reason = match &self.said {
            _ if inode == object::ORPHANS || inode == 0 => return 0,
            None => "there are names or extents of it, and no inode".to_owned(),
            Some(InodeItem { size, format: FOLDER, .. }) if *size != self.entries => {
                format!("size of the folder is {size}, and of the names in it {}", self.entries)
            }
            Some(InodeItem { stored, format: FILE | SYMLINK, .. })
                if *stored != self.stored && !(self.is_removed && self.stored < *stored) =>
            {
                format!("it has {stored} bytes, its extents have {}", self.stored)
            }
            Some(InodeItem { links, .. }) if u64::from(*links) != self.names => {
                format!("it has {links} links, and {} names", self.names)
            }
            _ if self.pairs != 0 => "names and places in the folder differ".to_owned(),
            _ => return 0,
        };
        job.report_contradiction(Subject::Inode { tree, inode }, None, 0, reason);
        1
    }
}

/// Returns whether the file of an entry has the same name, and reports it if not.
fn leads_back(
    job: &Job<'_>,
    (tree, root): (u64, TreeRoot),
    key: Key,
    bytes: &[u8],
    left: &mut u64,
) -> Result<bool> {
    let Some((location, format, name)) = entry(bytes) else { return Ok(true) };
    if location.kind != kind::INODE {
        return Ok(true);
    }
    let child = location.object;
    let is_same = |key: Key, bytes: &[u8], folder: u64, index: u64| {
        names(key, bytes).any(|it| it == (folder, index, name))
    };
    let mut found = (None, false);
    let mut cursor = Cursor::seek(job.filesystem, tree, root, Key::new(child, 0, 0))?;
    while let Some((other, bytes)) = cursor.item() {
        if other.object != child || other.kind > kind::INODE_EXTREF {
            break;
        }
        *left = left.saturating_sub(1 + bytes.len() as u64 / NAME_SIZE);
        if *left == 0 {
            return Ok(true);
        }
        match other.kind {
            kind::INODE => found.0 = u32_at(bytes, 52).and_then(kind_of_mode),
            _ => found.1 |= is_same(other, bytes, key.object, key.offset),
        }
        cursor.advance()?;
    }
    let reason = match found {
        (None, _) => "a folder names it, and it is not there",
        (Some(other), _) if other != format => "a folder says that it is of another kind",
        (_, false) => "a folder names it, and it does not have that name",
        _ => return Ok(true),
    };
    job.report_contradiction(Subject::Inode { tree, inode: child }, None, 0, reason);
    Ok(false)
}

/// Maximum number of names compared to find the wrong one, which takes a few seconds.
/// Limit in names.
const MAX_NAMES: u64 = 1 << 20;

/// Maximum number of items of inodes in removal that are read, which takes some ten seconds.
/// Limit in items.
const MAX_LEFT: u64 = 1 << 26;

/// Approximate size of a name and its header in bytes.
const NAME_SIZE: u64 = 16;

/// Maximum number of trees that are read again to find the wrong items. Snapshots share their
/// errors.
/// Limit in trees.
const MAX_LOCATED: u64 = 16;
