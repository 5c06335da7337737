//! Walks through all trees.
//!
//! The walk keeps a stack of blocks from a root down to the lowest node, so memory does not grow
//! with the file system. The root tree and the tree of log trees contain roots. Their leaves are
//! also on the stack, and the tree of each root is walked before the next root, except for file
//! trees, which come last. Leaves of all other trees are handed out for verification.
//!
//! Every reference is compared with its block, even if another reference led there before
//! ([`super::known`]). Only a correct reference counts as the visit, so a wrong one hides nothing
//! from later references.

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

/// Walks through all trees, and visits each block once.
pub(super) struct Walker<'a> {
    filesystem: &'a FileSystem,
    stack: Vec<Frame>,
    /// Trees still to be walked. The last one is next.
    roots: Vec<Tree>,
    /// File trees, which come after all others.
    files: Vec<Tree>,
    known: Known,
    /// Whether there are partial trees: subvolumes during removal, and snapshots by relocation.
    /// Some of their blocks have references that the extent tree counts but the walk does not
    /// follow.
    has_half_trees: bool,
}

/// A block and the progress in it.
struct Frame {
    block: TreeBlock,
    /// Reference by which the block was reached.
    reference: Expected,
    tree: Tree,
    next: usize,
}

/// A tree to walk.
#[derive(Clone, Copy)]
struct Tree {
    number: u64,
    root: TreeRoot,
    /// Part of the tree that is already removed, as in [`RootItem::removed`].
    removed: Option<(Key, u8)>,
    /// Whether its leaves contain roots of other trees.
    holds_roots: bool,
}

impl<'a> Walker<'a> {
    /// Creates a walker before the first block.
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

    /// Returns whether all existing references were followed.
    pub(super) fn is_whole(&self) -> bool {
        !self.has_half_trees
    }

    /// Continues with the file trees. Returns those that are complete.
    pub(super) fn begin_files(&mut self) -> Vec<(u64, TreeRoot)> {
        self.roots = std::mem::take(&mut self.files);
        self.roots.reverse();
        let whole = |tree: &&Tree| tree.removed.is_none() && tree.number != object::TREE_RELOCATION;
        self.roots.iter().filter(whole).map(|tree| (tree.number, tree.root)).collect()
    }

    /// Puts the next leaves into `batch`, after verifying the blocks above them. Returns false if
    /// none are left. `outcomes` are the results of the previous batch.
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
                // An item that is too short breaks a rule and was already reported.
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

    /// Returns whether the block at `logical` was verified or reported as lost.
    pub(super) fn is_done(&self, logical: u64) -> bool {
        self.known.is_done(logical, self.sector_size())
    }

    /// Returns whether the block at `logical` did not match a reference.
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

    /// Verifies a block on this thread. Returns it if it is good.
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

    /// Verifies a block that was found by a different reference. Returns it if it is good and was
    /// not already good.
    fn verify_other(&mut self, job: &Job<'_>, block: &Expected) -> Option<TreeBlock> {
        let was_good = self.known.is_done(block.logical, self.sector_size());
        let found = self.verify(job, block, metadata::Counting::No)?;
        if was_good {
            report_shared(job, block);
            return None;
        }
        Some(found)
    }

    /// Checks the upper limit of the keys of a block that is good or in progress.
    fn verify_end(&mut self, job: &Job<'_>, block: &Expected) {
        if let Ok(found) = self.filesystem.block(&Expected { end: None, ..*block })
            && !found.ends_below(block.end)
        {
            report(job, block.tree, block.logical, block.parent, BlockDefect::LastKey);
        }
        report_shared(job, block);
    }

    /// Hands out a leaf and its next siblings.
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

    /// Hands out a leaf, unless it is known.
    fn take_leaf(&mut self, job: &Job<'_>, expected: Expected, tree: Tree, batch: &mut Vec<Leaf>) {
        let leaf = Leaf { expected, root: Some(tree.root) };
        match self.known.look(&expected, self.sector_size()) {
            Look::New => {
                self.known.start(&expected);
                batch.push(leaf);
            }
            Look::Same => report_shared(job, &expected),
            Look::OtherEnd => self.verify_end(job, &expected),
            // The other thread finds the leaf wrong, so the data of the leaf is verified for this
            // reference.
            Look::Other => batch.extend(self.verify_other(job, &expected).map(|_| leaf)),
            Look::Reported => {}
        }
    }

    /// Returns the number of leaves to hand out at a time. Enough to fill the lanes of a kernel,
    /// but only a few MiB of data, so that all threads finish at about the same time.
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

/// Returns the tree of a root item in the tree `parent`, or `None` if the item is too short.
fn root_item(key: Key, bytes: &[u8], parent: u64, logical: u64, slot: u32) -> Option<Tree> {
    let RootItem { root, removed } = RootItem::parse(bytes, Parent::Root { logical, slot })?;
    // All log trees share one number.
    let number = if parent == object::TREE_LOG { object::TREE_LOG } else { key.object };
    // Other trees are never removed, even if their item says so.
    let removed = removed.filter(|_| object::is_removable(number));
    Some(Tree { number, root, removed, holds_roots: false })
}

/// Reports a second reference to a block if its tree cannot share blocks.
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

/// Returns whether the removal of a subvolume has already freed a child.
fn is_removed(block: &TreeBlock, index: usize, removed: Option<(Key, u8)>) -> bool {
    let Some((key, level)) = removed else { return false };
    block.level() >= level
        && index + 1 < block.count()
        && block.key(index + 1).is_some_and(|next| next <= key)
}

/// Size of the leaves in a batch in bytes.
const BATCH_SIZE: usize = 512 << 10;

/// Size of the data of a batch of the checksum tree in bytes.
const BATCH_DATA: usize = 16 << 20;
