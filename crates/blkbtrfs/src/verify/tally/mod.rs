//! Collects the items of all trees that describe the same objects, and compares them.
//!
//! Most comparisons use wrapping sums of keyed hashes. Expected values are added and found values
//! are subtracted. A sum is zero only if both sides are equal, for any order and any number of
//! threads ([`links`], [`references`]). The others use sets of ranges ([`space`]). Memory does not
//! grow with files and names, but with ranges of space and leaves of file trees.

mod devices;
mod extents;
mod hasher;
mod links;
mod names;
mod orphans;
mod promises;
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

/// Collected items.
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

    /// Adds a good leaf. Leaves of file trees come after all others.
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

    /// Adds a reference to a tree block. `from` is the node that contains it, or `None` for a root.
    pub(super) fn take_reference(&self, reference: &Expected, from: Option<&TreeBlock>) {
        self.references.take_pointer(&self.hasher, reference, from);
    }

    /// Returns whether the references in the extent tree differ from those found.
    pub(super) fn has_other_references(&self) -> bool {
        self.references.differ()
    }

    /// Compares everything, after all leaves were added and found good.
    pub(super) fn compare(&self, job: &Job<'_>, trees: &[(u64, TreeRoot)], references: bool) {
        self.links.compare(job, &self.hasher, trees);
        if references {
            self.references.compare(job);
        }
        let space = self.space();
        space.compare(job);
        devices::compare(job, &space);
    }

    /// Returns the collected ranges of space.
    pub(super) fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().expect("no thread panicked")
    }
}
