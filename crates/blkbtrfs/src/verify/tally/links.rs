//! Inodes, their names and their sizes: what one item promises, others must have.
//!
//! Everything is a sum that is linear in items, so that a leaf has one number, a tree the sum of those
//! of its leaves, and a leaf that snapshots share is looked at once. The sum of a tree in which all is
//! right is zero. Only where it is not the tree is read once more, to find which inode it is.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::hasher::Hasher;
use super::names::{entries, entry, names};
use super::subvolumes;
use crate::backref::file_extent::counted_bytes;
use crate::bytes::{u32_at, u64_at};
use crate::error::Result;
use crate::rules::kind_of_mode;
use crate::tree::key::kind;
use crate::tree::{Blocks, Cursor, Expected, Key, TreeBlock, TreeRoot, object, root_block};
use crate::verify::finding::Subject;
use crate::verify::job::Job;

/// Numbers of the leaves of file trees, and the sum over the root tree.
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

    /// Takes the names that subvolumes have: each is written twice.
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
        // What cannot be read was reported.
        let _ = subvolumes::compare(job);
        let leaves = self.leaves.lock().expect("no thread panicked");
        let mut budget = Budget { trees: MAX_LOCATED, names: MAX_NAMES };
        let mut sums = Sums { job, leaves: &leaves, nodes: HashMap::new() };
        for &(tree, root) in trees {
            // What cannot be read was reported.
            if sums.of(&root_block(tree, root)).unwrap_or(0) == 0 {
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

/// Effort that is left for finding out what is wrong.
struct Budget {
    trees: u64,
    names: u64,
}

/// Sums over the leaves below nodes: those of a node that several trees share are added up once.
struct Sums<'a> {
    job: &'a Job<'a>,
    leaves: &'a HashMap<u64, u64>,
    nodes: HashMap<u64, u64>,
}

impl Sums<'_> {
    /// Depth is bounded, since the level of a child is one less.
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

/// What an item adds to the sum of its tree.
fn promises(hasher: &Hasher, key: Key, bytes: &[u8]) -> Option<u64> {
    let inode = key.object;
    let of = |what: u8, inode: u64| hasher.hash((what, inode));
    let mut sum = 0u64;
    let mut add = |value: u64, times: u64| sum = sum.wrapping_add(value.wrapping_mul(times));
    match key.kind {
        kind::INODE => {
            let InodeItem { size, stored, links, format } = InodeItem::parse(bytes)?;
            if format == FOLDER {
                add(of(SIZE, inode), size);
            }
            if matches!(format, FILE | SYMLINK) {
                add(of(STORED, inode), stored);
            }
            if inode != object::ROOT_FOLDER {
                add(hasher.hash((LINKS, inode, format)), links.into());
            }
        }
        kind::FILE_EXTENT => {
            add(of(STORED, inode), counted_bytes(bytes)?.wrapping_neg());
        }
        kind::INODE_REF | kind::INODE_EXTREF => {
            for (folder, index, name) in names(key, bytes) {
                if folder != inode {
                    add(hasher.hash((NAME, folder, index, inode, name)), 1);
                }
            }
        }
        kind::DIR_INDEX => {
            let (location, format, name) = entry(bytes)?;
            add(of(SIZE, inode), (name.len() as u64).wrapping_neg());
            add(hasher.hash((ENTRY, inode, location, format, name)), u64::MAX);
            if location.kind == kind::INODE {
                let child = location.object;
                add(hasher.hash((NAME, inode, key.offset, child, name)), u64::MAX);
                add(hasher.hash((LINKS, child, format)), u64::MAX);
            }
        }
        kind::DIR_ITEM => {
            for (location, format, name) in entries(bytes) {
                add(of(SIZE, inode), (name.len() as u64).wrapping_neg());
                add(hasher.hash((ENTRY, inode, location, format, name)), 1);
            }
        }
        _ => {}
    }
    Some(sum)
}

/// What an inode promises.
struct InodeItem {
    size: u64,
    /// Bytes that its extents have.
    stored: u64,
    links: u32,
    /// Kind of file.
    format: u8,
}

impl InodeItem {
    fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            size: u64_at(bytes, 16)?,
            stored: u64_at(bytes, 24)?,
            links: u32_at(bytes, 40)?,
            format: kind_of_mode(u32_at(bytes, 52)?)?,
        })
    }
}

/// Reads a tree in which something is wrong and reports which inodes it is about; returns how many.
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
        if key.kind == kind::DIR_INDEX && *left > 0 {
            count += u64::from(!leads_back(job, (tree, root), key, bytes, left)?);
        }
        cursor.advance()?;
    }
    Ok(count + sums.report(job, tree))
}

/// What is said of one inode, as far as its own items tell.
#[derive(Default)]
struct Inode {
    number: u64,
    said: Option<InodeItem>,
    stored: u64,
    names: u64,
    entries: u64,
    /// Sum over entries by name less those by place.
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
            kind::DIR_INDEX => {
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

    /// Reports what is wrong; returns how many.
    fn report(&self, job: &Job<'_>, tree: u64) -> u64 {
        let inode = self.number;
        let reason = match &self.said {
            _ if inode == object::ORPHANS || inode == 0 => return 0,
            None => "there are names or extents of it, and no inode".to_owned(),
            Some(InodeItem { size, format: FOLDER, .. }) if *size != self.entries => {
                format!("size of the folder is {size}, that of the names in it {}", self.entries)
            }
            Some(InodeItem { stored, format: FILE | SYMLINK, .. }) if *stored != self.stored => {
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

/// Whether the file that an entry names has the same name. Reports if not.
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

/// Kinds of files, as folders have them.
const FILE: u8 = 1;
const FOLDER: u8 = 2;
const SYMLINK: u8 = 7;

/// Kinds of what is hashed.
const SIZE: u8 = 1;
const STORED: u8 = 2;
const LINKS: u8 = 3;
const NAME: u8 = 4;
const ENTRY: u8 = 5;

/// Names that are compared to find which one is wrong: a few seconds.
const MAX_NAMES: u64 = 1 << 20;

/// Bytes of a name and its head, about.
const NAME_SIZE: u64 = 16;

/// Trees that are read again to find what is wrong in them: snapshots share what is.
const MAX_LOCATED: u64 = 16;
