//! What the leaves of all trees say of the same things, brought together to be compared.
//!
//! Most of it is sums without carry of keyed hashes: what one tree promises is added, what another
//! one has is subtracted, and nothing but equality makes a sum zero, whatever the order and however
//! many threads there are ([`links`], [`references`]). The rest are sets of ranges ([`space`]).
//! Memory does not grow with files and names, but with pieces of space and leaves of file trees.

mod devices;
mod extents;
mod hasher;
mod links;
mod names;
mod references;
mod space;
mod subvolumes;

use std::sync::{Mutex, MutexGuard};

use self::hasher::Hasher;
use self::links::Links;
use self::references::References;
use self::space::Space;
use super::job::Job;
use super::leaf::Leaf;
use crate::chunk::ChunkMap;
use crate::tree::{ANY_TREE, Expected, TreeBlock, TreeRoot, object};

/// Everything that was said so far.
pub(super) struct Tally {
    hasher: Hasher,
    links: Links,
    references: References,
    space: Mutex<Space>,
}

impl Tally {
    pub(super) fn new(chunks: &ChunkMap) -> Self {
        Self {
            hasher: Hasher::new(),
            links: Links::default(),
            references: References::new(chunks),
            space: Mutex::default(),
        }
    }

    /// Takes a leaf that was found good. Those of file trees come after all other ones.
    pub(super) fn take(&self, job: &Job<'_>, block: &TreeBlock, leaf: &Leaf) {
        let tree = match leaf.expected.tree {
            ANY_TREE => block.owner(),
            tree => tree,
        };
        match tree {
            object::EXTENT_TREE => {
                self.references.take_extents(&self.hasher, block);
                self.space().take_extents(block, job.filesystem.node_size() as u64);
            }
            object::BLOCK_GROUP_TREE => self.space().take_groups(block),
            object::FREE_SPACE_TREE => self.space().take_free(job.filesystem, block),
            object::DEVICE_TREE => self.space().take_dev_extents(block),
            object::CHECKSUM_TREE | object::TREE_LOG => {
                let is_log = tree == object::TREE_LOG;
                self.space().take_checksums(job.filesystem, block, is_log);
                if is_log {
                    extents::take(&self.space, job, block, leaf);
                }
            }
            object::ROOT_TREE => {
                self.links.take_roots(&self.hasher, block);
                self.references.take_file_extents(&self.hasher, block);
                extents::take(&self.space, job, block, leaf);
            }
            _ if object::is_of_files(tree) => {
                self.links.take_files(&self.hasher, block);
                self.references.take_file_extents(&self.hasher, block);
                extents::take(&self.space, job, block, leaf);
            }
            _ => {}
        }
    }

    /// Takes a reference to a tree block. `from` is the node that it is in; roots have none.
    pub(super) fn take_reference(&self, reference: &Expected, from: Option<&TreeBlock>) {
        self.references.take_pointer(&self.hasher, reference, from);
    }

    /// Whether the extent tree has other references than there are.
    pub(super) fn has_other_references(&self) -> bool {
        self.references.differ()
    }

    /// Compares everything, once all leaves were taken and found good.
    pub(super) fn compare(&self, job: &Job<'_>, trees: &[(u64, TreeRoot)], references: bool) {
        self.links.compare(job, &self.hasher, trees);
        if references {
            self.references.compare(job);
        }
        let space = self.space();
        space.compare(job);
        devices::compare(job, &space);
    }

    /// What was found of space so far.
    pub(super) fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().expect("no thread panicked")
    }
}
