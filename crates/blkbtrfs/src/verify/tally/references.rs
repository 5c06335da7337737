//! Compares references to extents and tree blocks with those listed in the extent tree.
//!
//! Each chunk has its own sums, so that a difference can be located.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::hasher::Hasher;
use crate::backref::file_extent::FileExtent;
use crate::backref::refs::{ExtentItem, Reference, TREE_BLOCK};
use crate::bytes::u32_at;
use crate::chunk::ChunkMap;
use crate::rules::FULL;
use crate::tree::key::kind;
use crate::tree::{Expected, Key, TreeBlock, object};
use crate::verify::finding::Subject;
use crate::verify::job::Job;

pub(super) struct References {
    /// Start of each chunk, in order. `counts` and `sources` have for each chunk the difference
    /// between the extent tree and the references found, in their number and in their sources.
    starts: Vec<u64>,
    counts: Vec<AtomicU64>,
    sources: Vec<AtomicU64>,
    /// Blocks whose references are by address instead of by tree.
    full: Mutex<HashSet<u64>>,
}

impl References {
    pub(super) fn new(chunks: &ChunkMap) -> Self {
        let starts: Vec<u64> = chunks.iter().map(|chunk| chunk.logical).collect();
        let zeros = || starts.iter().map(|_| AtomicU64::new(0)).collect();
        Self { counts: zeros(), sources: zeros(), full: Mutex::default(), starts }
    }

    /// Adds the references in a leaf of the extent tree.
    pub(super) fn take_extents(&self, hasher: &Hasher, leaf: &TreeBlock) {
        for (key, bytes) in leaf.items() {
            match key.kind {
                kind::EXTENT | kind::METADATA => {
                    let Some(item) = ExtentItem::parse(key, bytes) else { continue };
                    let is_tree_block = item.flags & TREE_BLOCK != 0;
                    let extent = if is_tree_block {
                        block(hasher, key.object, item.level, item.generation)
                    } else {
                        data(hasher, key.object, key.offset)
                    };
                    self.add(&self.counts, key.object, extent.wrapping_mul(item.count));
                    if is_tree_block && item.flags & FULL != 0 {
                        self.full.lock().expect("no thread panicked").insert(key.object);
                    }
                    for (reference, count) in item.references() {
                        self.add_source(hasher, key.object, reference, count);
                    }
                }
                kind::TREE_BLOCK_REF | kind::SHARED_BLOCK_REF => {
                    if let Some(reference) = Reference::parse(key, bytes) {
                        self.add_source(hasher, key.object, reference, 1);
                    }
                }
                kind::DATA_REF | kind::SHARED_DATA_REF => {
                    let at = if key.kind == kind::DATA_REF { 24 } else { 0 };
                    if let Some((reference, count)) =
                        Reference::parse(key, bytes).zip(u32_at(bytes, at))
                    {
                        self.add_source(hasher, key.object, reference, count);
                    }
                }
                _ => {}
            }
        }
    }

    /// Subtracts a pointer or a root. The extent tree lists none for logs.
    pub(super) fn take_pointer(
        &self,
        hasher: &Hasher,
        reference: &Expected,
        from: Option<&TreeBlock>,
    ) {
        let Expected { tree, logical, level, generation, .. } = *reference;
        if tree == object::TREE_LOG {
            return;
        }
        let block = block(hasher, logical, level, generation.unwrap_or_default());
        self.add(&self.counts, logical, block.wrapping_neg());
        let source = match from {
            None => Reference::Tree(tree),
            Some(node) if self.is_full(node) => Reference::Block(node.logical()),
            Some(node) => Reference::Tree(node.owner()),
        };
        self.add_source(hasher, logical, source, -1i32 as u32);
    }

    /// Subtracts the extents that a leaf of a file tree uses.
    pub(super) fn take_file_extents(&self, hasher: &Hasher, leaf: &TreeBlock) {
        let is_full = self.is_full(leaf);
        for (key, bytes) in leaf.items().filter(|(key, _)| key.kind == kind::FILE_EXTENT) {
            let Some(found) = FileExtent::parse(bytes) else { continue };
            let extent = data(hasher, found.extent, found.stored);
            self.add(&self.counts, found.extent, extent.wrapping_neg());
            let source = if is_full {
                Reference::Leaf(leaf.logical())
            } else {
                let offset = key.offset.wrapping_sub(found.start);
                Reference::File { tree: leaf.owner(), inode: key.object, offset }
            };
            self.add_source(hasher, found.extent, source, -1i32 as u32);
        }
    }

    pub(super) fn differ(&self) -> bool {
        let mut sums = self.counts.iter().chain(&self.sources);
        sums.any(|sum| sum.load(Ordering::Relaxed) != 0)
    }

    /// Reports each chunk whose references differ.
    pub(super) fn compare(&self, job: &Job<'_>) {
        let cells = self.starts.iter().zip(&self.counts).zip(&self.sources);
        for ((start, counts), sources) in cells {
            let reason = if counts.load(Ordering::Relaxed) != 0 {
                "the extent tree counts other references to the extents in it than there are"
            } else if sources.load(Ordering::Relaxed) != 0 {
                "the extent tree has references to the extents in it from elsewhere than there are"
            } else {
                continue;
            };
            let length = job.filesystem.chunks().find(*start).map_or(0, |chunk| chunk.length);
            job.report_contradiction(Subject::Chunk, Some(*start), length, reason);
        }
    }

    fn is_full(&self, block: &TreeBlock) -> bool {
        let may_be = object::is_shareable(block.owner());
        may_be && self.full.lock().expect("no thread panicked").contains(&block.logical())
    }

    fn add_source(&self, hasher: &Hasher, extent: u64, source: Reference, count: u32) {
        let count = i64::from(count as i32) as u64;
        self.add(&self.sources, extent, hasher.hash((extent, source)).wrapping_mul(count));
    }

    fn add(&self, sums: &[AtomicU64], address: u64, value: u64) {
        let index = self.starts.partition_point(|start| *start <= address).saturating_sub(1);
        if let Some(sum) = sums.get(index) {
            sum.fetch_add(value, Ordering::Relaxed);
        }
    }
}

fn block(hasher: &Hasher, logical: u64, level: u8, generation: u64) -> u64 {
    hasher.hash((Key::new(logical, level, generation), BLOCK))
}

fn data(hasher: &Hasher, start: u64, length: u64) -> u64 {
    hasher.hash((start, length, DATA))
}

/// Kinds of hashed values.
const BLOCK: u8 = 1;
const DATA: u8 = 2;
