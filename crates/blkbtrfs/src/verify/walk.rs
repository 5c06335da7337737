//! The way through all trees.
//!
//! A stack of blocks, from a root down to the lowest node: memory does not grow with the file
//! system. The root tree and the tree of log trees hold roots; their leaves are part of the stack,
//! too, and each root in them is walked before the next one is looked at. Leaves of all other trees
//! are handed out to be verified elsewhere.
//!
//! Every reference is held against the block that it leads to, also if another one led there before
//! ([`super::known`]). Only one that is right counts as the visit: a wrong one hides nothing from
//! those that come after it.

use super::examine::Examiner;
use super::finding::Finding;
use super::job::Job;
use super::known::{Known, Look, Outcome};
use super::leaf::Leaf;
use super::metadata;
use crate::filesystem::{FileSystem, RootItem};
use crate::tree::key::kind;
use crate::tree::{
    BlockDefect, Blocks, Expected, Key, Parent, TreeBlock, TreeRoot, object, root_block,
};

/// Goes through all trees, and visits each block once.
pub(super) struct Walker<'a> {
    filesystem: &'a FileSystem,
    stack: Vec<Frame>,
    /// Trees that are still to be walked, the last one first.
    roots: Vec<Tree>,
    /// Trees of files, which come after all other ones.
    files: Vec<Tree>,
    known: Known,
    /// Whether there are trees that are half gone: subvolumes that are being removed, and snapshots
    /// that relocation makes. Some of their blocks have references that count and are not followed.
    has_half_trees: bool,
}

/// A block and how much of it is done.
struct Frame {
    block: TreeBlock,
    /// The reference that led to it.
    reference: Expected,
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
        Self {
            filesystem,
            stack: Vec::new(),
            roots,
            files: Vec::new(),
            known: Known::new(),
            has_half_trees: false,
        }
    }

    /// Whether every reference that there is was followed.
    pub(super) fn is_whole(&self) -> bool {
        !self.has_half_trees
    }

    /// Goes on with the trees of files. Gives those that are whole.
    pub(super) fn begin_files(&mut self) -> Vec<(u64, TreeRoot)> {
        self.roots = std::mem::take(&mut self.files);
        self.roots.reverse();
        let whole = |tree: &&Tree| tree.removed.is_none() && tree.number != object::TREE_RELOCATION;
        self.roots.iter().filter(whole).map(|tree| (tree.number, tree.root)).collect()
    }

    /// Puts the next leaves into `batch`, after having verified what is above them. False if there
    /// are none left. `outcomes` are those of the batch before it.
    pub(super) fn next(
        &mut self,
        examiner: &Examiner<'_>,
        batch: &mut Vec<Leaf>,
        outcomes: &[Outcome],
    ) -> bool {
        for (leaf, outcome) in batch.drain(..).zip(outcomes) {
            self.known.finish(&leaf.expected, *outcome, self.sector_size());
        }
        while batch.is_empty() {
            let Some(frame) = self.stack.last_mut() else {
                match self.roots.pop() {
                    Some(tree) => self.enter(examiner, tree, batch),
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
                let (logical, slot) = (frame.block.logical(), index as u32);
                let root = frame.block.item(index).filter(|(key, _)| key.kind == kind::ROOT);
                // An item that is cut off breaks a rule, and was reported.
                let tree =
                    root.and_then(|(key, bytes)| root_item(key, bytes, tree.number, logical, slot));
                if let Some(tree) = tree {
                    self.has_half_trees |=
                        tree.removed.is_some() || tree.number == object::TREE_RELOCATION;
                    if object::is_of_files(tree.number) {
                        self.files.push(tree);
                    } else {
                        self.enter(examiner, tree, batch);
                    }
                }
                continue;
            }
            if is_removed(&frame.block, index, tree.removed) {
                continue;
            }
            let Some(child) = frame.block.child(index, &frame.reference) else { continue };
            examiner.tally.take_reference(&child, Some(&frame.block));
            if child.level > 0 || tree.holds_roots {
                self.visit(examiner, child, tree);
            } else {
                self.take_leaves(examiner, child, tree, batch);
            }
        }
        true
    }

    /// Whether the block at `logical` was verified, or reported as lost.
    pub(super) fn is_done(&self, logical: u64) -> bool {
        self.known.is_done(logical, self.sector_size())
    }

    /// Whether the block at `logical` is not what a reference says.
    pub(super) fn is_wrong(&self, logical: u64) -> bool {
        self.known.is_wrong(logical)
    }

    fn sector_size(&self) -> u64 {
        self.filesystem.sector_size() as u64
    }

    fn enter(&mut self, examiner: &Examiner<'_>, tree: Tree, batch: &mut Vec<Leaf>) {
        let root = root_block(tree.number, tree.root);
        examiner.tally.take_reference(&root, None);
        if root.level > 0 || tree.holds_roots {
            self.visit(examiner, root, tree);
        } else {
            self.take_leaf(examiner.job, root, tree, batch);
        }
    }

    /// Verifies a block and puts it on the stack.
    fn visit(&mut self, examiner: &Examiner<'_>, block: Expected, tree: Tree) {
        let job = examiner.job;
        let found = match self.known.look(&block, self.sector_size()) {
            Look::New => self.verify(job, &block, metadata::Counting::Yes),
            Look::Same => return report_shared(job, &block),
            Look::OtherEnd => return self.verify_end(job, &block),
            Look::Other => self.verify_other(job, &block),
            Look::Reported => None,
        };
        if let Some(found) = found {
            if found.level() == 0 {
                examiner.examine(&found, &Leaf { expected: block, root: Some(tree.root) });
            }
            self.stack.push(Frame { block: found, reference: block, tree, next: 0 });
        }
    }

    /// Verifies a block here and now; gives it if it is good.
    fn verify(
        &mut self,
        job: &Job<'_>,
        block: &Expected,
        counting: metadata::Counting,
    ) -> Option<TreeBlock> {
        let verified = job.verify_blocks(&[*block], &mut Default::default(), counting);
        let (outcome, found) = verified.into_iter().next()?;
        if outcome == Outcome::Good || !self.known.is_done(block.logical, self.sector_size()) {
            self.known.finish(block, outcome, self.sector_size());
        }
        found
    }

    /// Verifies a block that another reference says something else of; gives it if it is good and
    /// was not found good before.
    fn verify_other(&mut self, job: &Job<'_>, block: &Expected) -> Option<TreeBlock> {
        let was_good = self.known.is_done(block.logical, self.sector_size());
        let found = self.verify(job, block, metadata::Counting::No)?;
        if was_good {
            report_shared(job, block);
            return None;
        }
        Some(found)
    }

    /// Compares the keys of a block, which is good or being looked at, with those behind it.
    fn verify_end(&mut self, job: &Job<'_>, block: &Expected) {
        if let Ok(found) = self.filesystem.block(&Expected { end: None, ..*block })
            && !found.ends_below(block.end)
        {
            report(job, block.tree, block.logical, block.parent, BlockDefect::LastKey);
        }
        report_shared(job, block);
    }

    /// Hands out a leaf and those beside it.
    fn take_leaves(
        &mut self,
        examiner: &Examiner<'_>,
        first: Expected,
        tree: Tree,
        batch: &mut Vec<Leaf>,
    ) {
        let limit = self.batch_length(first.tree);
        let mut next = Some(first);
        while let Some(leaf) = next {
            self.take_leaf(examiner.job, leaf, tree, batch);
            if batch.len() >= limit {
                break;
            }
            let Some(frame) = self.stack.last_mut() else { break };
            next = frame.block.child(frame.next, &frame.reference);
            if let Some(leaf) = &next {
                examiner.tally.take_reference(leaf, Some(&frame.block));
            }
            frame.next += 1;
        }
    }

    /// Hands out a leaf, if it is not known.
    fn take_leaf(&mut self, job: &Job<'_>, expected: Expected, tree: Tree, batch: &mut Vec<Leaf>) {
        let leaf = Leaf { expected, root: Some(tree.root) };
        match self.known.look(&expected, self.sector_size()) {
            Look::New => {
                self.known.start(&expected);
                batch.push(leaf);
            }
            Look::Same => report_shared(job, &expected),
            Look::OtherEnd => self.verify_end(job, &expected),
            // Its thread finds it wrong, so what is below it is verified for this one.
            Look::Other => batch.extend(self.verify_other(job, &expected).map(|_| leaf)),
            Look::Reported => {}
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

/// The tree whose root an item of the tree `parent` is; `None` if it is cut off.
fn root_item(key: Key, bytes: &[u8], parent: u64, logical: u64, slot: u32) -> Option<Tree> {
    let RootItem { root, removed } = RootItem::parse(bytes, Parent::Root { logical, slot })?;
    // All log trees have the number of their kind.
    let number = if parent == object::TREE_LOG { object::TREE_LOG } else { key.object };
    // No other tree is ever removed, whatever its item claims.
    let removed = removed.filter(|_| object::is_removable(number));
    Some(Tree { number, root, removed, holds_roots: false })
}

/// Reports a second reference to a block, if there can be only one.
fn report_shared(job: &Job<'_>, block: &Expected) {
    if !object::is_shareable(block.tree) {
        report(job, block.tree, block.logical, block.parent, BlockDefect::Shared);
    }
}

fn report(job: &Job<'_>, tree: u64, logical: u64, parent: Option<Parent>, defect: BlockDefect) {
    let length = job.filesystem.node_size();
    let finding = Finding::of_tree_block((tree, 0), Some(logical), length, defect);
    job.report(Finding { parent, ..finding });
}

/// Whether the removal of a subvolume has freed a child already.
fn is_removed(block: &TreeBlock, index: usize, removed: Option<(Key, u8)>) -> bool {
    let Some((key, level)) = removed else { return false };
    block.level() >= level
        && index + 1 < block.count()
        && block.key(index + 1).is_some_and(|next| next <= key)
}

/// Bytes of leaves in a batch.
const BATCH_SIZE: usize = 512 << 10;

/// Bytes of data that a batch of the checksum tree leads to.
const BATCH_DATA: usize = 16 << 20;
