//! Subtrees of BLAKE3, which are hashed with their offset.

use super::{JoinMethod, Method};
use crate::Digest;
use crate::algo::Hash;
use crate::algo::blake3::{Blake3, Tree};
use crate::block::{BlockDigests, Run};

#[derive(Debug)]
pub(super) struct Subtrees;

impl Method for Subtrees {
    fn hash(&self, offset: u64, segment: &[u8]) -> Digest {
        let mut subtree = Blake3::subtree(offset);
        subtree.update(segment);
        subtree.chaining_value()
    }

    fn zeros(&self, mut offset: u64, count: u64, size: usize, hashes: &mut BlockDigests) {
        let size = size as u64;
        for _ in 0..count {
            let mut subtree = Blake3::subtree(offset);
            subtree.update_zeros(size);
            hashes.push(&subtree.chaining_value(), size);
            offset += size;
        }
    }

    fn max_zero_run(&self) -> u64 {
        1
    }

    fn join(&self, _: u64) -> Box<dyn JoinMethod> {
        Box::new(Tree::default())
    }
}

impl JoinMethod for Tree {
    fn take(&mut self, segments: &BlockDigests) {
        for run in segments.runs() {
            match run {
                Run::Digests { digests, .. } => self.push(digests),
                Run::Zeros { .. } => panic!("a subtree of zeros depends on where it stands"),
            }
        }
    }

    fn finalize(self: Box<Self>) -> Digest {
        self.root()
    }
}
