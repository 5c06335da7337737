//! The way through all trees.
//!
//! A stack of blocks, from a root down to the lowest node: memory does not grow with the file
//! system. The root tree and the tree of log trees hold roots; their leaves are part of the stack,
//! too, and each root in them is walked before the next one is looked at. Leaves of all other trees
//! are handed out to be verified elsewhere.

use std::collections::HashMap;

use super::Job;
use crate::filesystem::{FileSystem, RootItem};
use crate::superblock::TreeRoot;
use crate::tree::cursor::root_block;
use crate::tree::key::kind;
use crate::tree::{Expected, Key, TreeBlock, object};

/// Goes through all trees, and visits each block once.
pub(super) struct Walker<'a> {
    filesystem: &'a FileSystem,
    stack: Vec<Frame>,
    /// Trees that are still to be walked, the last one first.
    roots: Vec<Tree>,
    visited: Visited,
}

/// A block and how much of it is done.
struct Frame {
    block: TreeBlock,
    tree: Tree,
    next: usize,
}

/// A tree on its way.
#[derive(Clone, Copy)]
struct Tree {
    number: u64,
    root: TreeRoot,
    /// What is not there any more: see [`RootItem::removed`].
    removed: Option<(Key, u8)>,
    /// Its leaves hold the roots of other trees.
    holds_roots: bool,
}

impl<'a> Walker<'a> {
    /// A walker before the first block.
    pub(super) fn new(filesystem: &'a FileSystem) -> Self {
        let superblock = filesystem.superblock();
        let tree = |number, root, holds_roots| Tree { number, root, removed: None, holds_roots };
        let mut roots = vec![
            tree(object::ROOT_TREE, superblock.root, true),
            tree(object::CHUNK_TREE, superblock.chunk_root, false),
        ];
        roots.extend(superblock.log_root.map(|root| tree(object::TREE_LOG, root, true)));
        Self { filesystem, stack: Vec::new(), roots, visited: Visited::default() }
    }

    /// Puts the next leaves into `batch`, after having verified what is above them. False if there
    /// are none left.
    pub(super) fn next(&mut self, job: &Job<'_>, batch: &mut Vec<Expected>) -> bool {
        batch.clear();
        while batch.is_empty() {
            let Some(frame) = self.stack.last_mut() else {
                match self.roots.pop() {
                    Some(tree) => self.enter(job, tree, batch),
                    None => return false,
                }
                continue;
            };
            let index = frame.next;
            if index >= frame.block.count() {
                self.stack.pop();
                continue;
            }
            frame.next += 1;
            let tree = frame.tree;
            if frame.block.level() == 0 {
                let root = frame
                    .block
                    .item(index)
                    .and_then(|(key, bytes)| root_item(key, bytes, tree.number));
                if let Some(tree) = root {
                    self.enter(job, tree, batch);
                }
                continue;
            }
            if is_removed(&frame.block, index, tree.removed) {
                continue;
            }
            let Some(child) = frame.block.child(index, tree.number) else { continue };
            if child.level > 0 || tree.holds_roots {
                self.visit(job, child, tree);
            } else {
                self.take_leaves(child, batch);
            }
        }
        true
    }

    /// Whether `logical` was visited; from now on it was.
    pub(super) fn mark(&mut self, logical: u64) -> bool {
        self.visited.mark(logical, self.filesystem.sector_size() as u64)
    }

    fn enter(&mut self, job: &Job<'_>, tree: Tree, batch: &mut Vec<Expected>) {
        let root = root_block(tree.number, tree.root);
        if root.level > 0 || tree.holds_roots {
            self.visit(job, root, tree);
        } else if !self.mark(root.logical) {
            batch.push(root);
        }
    }

    /// Verifies a block and puts it on the stack.
    fn visit(&mut self, job: &Job<'_>, block: Expected, tree: Tree) {
        if self.mark(block.logical) {
            return;
        }
        let verified = job.verify_blocks(&[block], &mut Default::default());
        if let Some(block) = verified.into_iter().flatten().next() {
            self.stack.push(Frame { block, tree, next: 0 });
        }
    }

    /// Hands out a leaf and those beside it.
    fn take_leaves(&mut self, first: Expected, batch: &mut Vec<Expected>) {
        let limit = self.batch_length(first.tree);
        let mut next = Some(first);
        while let Some(leaf) = next {
            if !self.mark(leaf.logical) {
                batch.push(leaf);
            }
            if batch.len() >= limit {
                break;
            }
            let Some(frame) = self.stack.last_mut() else { break };
            next = frame.block.child(frame.next, frame.tree.number);
            frame.next += 1;
        }
    }

    /// Leaves to hand out at a time: enough to fill the lanes of a kernel, but not more than a few
    /// MiB of data behind them, so that all threads are done at about the same time.
    fn batch_length(&self, tree: u64) -> usize {
        let node_size = self.filesystem.node_size();
        let most = BATCH_SIZE / node_size;
        if tree != object::CHECKSUM_TREE {
            return most;
        }
        let data = node_size / self.filesystem.summer().size() * self.filesystem.sector_size();
        (BATCH_DATA / data).clamp(1, most)
    }
}

/// The tree whose root an item of the tree `parent` is.
fn root_item(key: Key, bytes: &[u8], parent: u64) -> Option<Tree> {
    if key.kind != kind::ROOT {
        return None;
    }
    let RootItem { root, removed } = RootItem::parse(bytes)?;
    // All log trees have the number of their kind.
    let number = if parent == object::TREE_LOG { object::TREE_LOG } else { key.object };
    (root.logical != 0).then_some(Tree { number, root, removed, holds_roots: false })
}

/// Whether the removal of a subvolume has freed a child already.
fn is_removed(block: &TreeBlock, index: usize, removed: Option<(Key, u8)>) -> bool {
    let Some((key, level)) = removed else { return false };
    block.level() >= level
        && index + 1 < block.count()
        && block.key(index + 1).is_some_and(|next| next <= key)
}

/// A set of sectors.
///
/// One bit each, in pages that are made when the first of their sectors comes: a page costs less
/// than the tree block that it is made for.
#[derive(Default)]
struct Visited {
    pages: HashMap<u64, Box<[u64; PAGE_WORDS]>>,
}

impl Visited {
    /// Whether the sector of `logical` was in the set; from now on it is.
    fn mark(&mut self, logical: u64, sector_size: u64) -> bool {
        let sector = logical / sector_size;
        let (word, bit) = ((sector / 64) as usize % PAGE_WORDS, 1 << (sector % 64));
        let page = self.pages.entry(sector / (64 * PAGE_WORDS as u64));
        let page = page.or_insert_with(|| Box::new([0; PAGE_WORDS]));
        let was_visited = page[word] & bit != 0;
        page[word] |= bit;
        was_visited
    }
}

/// Bytes of leaves in a batch.
const BATCH_SIZE: usize = 512 << 10;

/// Bytes of data that a batch of the checksum tree leads to.
const BATCH_DATA: usize = 16 << 20;

/// 16 MiB of addresses in sectors of 4 KiB.
const PAGE_WORDS: usize = 64;
