//! Verifies a leaf: its mirrors, its items against the rules and against other leaves, and the data
//! whose checksums it contains.

use super::data;
use super::finding::Finding;
use super::job::Job;
use super::known::Outcome;
use super::leaf::Leaf;
use super::metadata::{BlockBuffer, Counting};
use super::tally::Tally;
use crate::rules::Rules;
use crate::tree::TreeBlock;

/// Verifies leaves.
pub(super) struct Examiner<'a> {
    pub(super) job: &'a Job<'a>,
    rules: Rules<'a>,
    pub(super) tally: Tally,
}

/// Read buffers of a thread.
#[derive(Default)]
pub(super) struct Buffers {
    blocks: BlockBuffer,
    data: data::Memory,
}

impl<'a> Examiner<'a> {
    pub(super) fn new(job: &'a Job<'a>) -> Self {
        let (superblock, chunks) = (job.filesystem.superblock(), job.filesystem.chunks());
        let rules = Rules::new(superblock, chunks, job.filesystem.summer().size());
        Self { job, rules, tally: Tally::new(chunks) }
    }

    /// Verifies leaves, and the data whose checksums they contain.
    pub(super) fn verify(&self, batch: &[Leaf], buffers: &mut Buffers) -> Vec<Outcome> {
        let Buffers { blocks, data } = buffers;
        let mut outcomes = Vec::with_capacity(batch.len());
        let expected: Vec<_> = batch.iter().map(|leaf| leaf.expected).collect();
        let verified = self.job.verify_blocks(&expected, blocks, Counting::Yes);
        for (leaf, (outcome, block)) in batch.iter().zip(verified) {
            outcomes.push(outcome);
            let Some(block) = block else { continue };
            self.examine(&block, leaf);
            if data::may_have_checksums(block.owner()) {
                self.job.verify_data(&block, data);
            }
        }
        outcomes
    }

    /// Checks the items of a good leaf, and adds them to the tally.
    pub(super) fn examine(&self, block: &TreeBlock, leaf: &Leaf) {
        if let Err(defect) = self.rules.check(block, leaf.expected.tree) {
            let owners = self.job.owners(|resolver| resolver.tree_block(&leaf.expected));
            let (place, length) = ((leaf.expected.tree, 0), self.job.filesystem.node_size());
            let finding =
                Finding::of_tree_block(place, Some(leaf.expected.logical), length, defect);
            self.job.report(Finding { parent: leaf.expected.parent, owners, ..finding });
        }
        self.tally.take(self.job, block, leaf);
    }
}
