//! BLAKE3, through its authors' crate.

use ::blake3::hazmat::{self, ChainingValue, HasherExt, Mode};

use super::hash::{Hash, finish_each};
use crate::Digest;

#[derive(Clone)]
pub(crate) struct Blake3(Box<::blake3::Hasher>);

impl Blake3 {
    pub(super) fn new() -> Self {
        Self(Box::default())
    }

    /// Starts the hash of a proper part of a content, beginning at `offset`. The offset must be a
    /// multiple of a power of two that is at least 1024 and at least the length of the part.
    pub(crate) fn subtree(offset: u64) -> Self {
        let mut hasher = Self::new();
        hasher.0.set_input_offset(offset);
        hasher
    }

    /// Returns the chaining value of a part, which goes into a [`Tree`].
    pub(crate) fn chaining_value(&self) -> Digest {
        let mut digest = Digest::zeroed(::blake3::OUT_LEN);
        digest.as_mut_bytes().copy_from_slice(&self.0.finalize_non_root());
        digest
    }
}

impl Hash for Blake3 {
    fn update(&mut self, input: &[u8]) {
        self.0.update(input);
    }

    fn finalize_into(self, digest: &mut [u8]) {
        digest.copy_from_slice(self.0.finalize().as_bytes());
    }

    fn finish_many(&self, inputs: &[&[u8]], digests: &mut [u8]) {
        if self.0.count() > 0 {
            return finish_each(self, inputs, digests);
        }
        for (input, digest) in inputs.iter().zip(digests.chunks_exact_mut(::blake3::OUT_LEN)) {
            digest.copy_from_slice(::blake3::hash(input).as_bytes());
        }
    }
}

/// The tree over subtrees of equal size, of which the last may be smaller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    /// Chaining values of complete subtrees, the largest first.
    stack: Vec<ChainingValue>,
    /// Number of subtrees so far.
    count: u64,
}

impl Tree {
    /// Appends chaining values that follow one another.
    pub(crate) fn push(&mut self, values: &[u8]) {
        for value in values.as_chunks().0 {
            // Complete subtrees are merged only when another one follows, because the last merge is
            // the root's.
            while self.stack.len() as u32 > self.count.count_ones() {
                self.merge();
            }
            self.stack.push(*value);
            self.count += 1;
        }
    }

    /// Returns the hash of the whole content, which has at least two subtrees.
    pub(crate) fn root(mut self) -> Digest {
        while self.stack.len() > 2 {
            self.merge();
        }
        let [left, right] = &self.stack[..] else { panic!("the root is over two subtrees") };
        let mut digest = Digest::zeroed(::blake3::OUT_LEN);
        let hash = hazmat::merge_subtrees_root(left, right, Mode::Hash);
        digest.as_mut_bytes().copy_from_slice(hash.as_bytes());
        digest
    }

    fn merge(&mut self) {
        let (Some(right), Some(left)) = (self.stack.pop(), self.stack.pop()) else {
            panic!("a parent has two children");
        };
        self.stack.push(hazmat::merge_subtrees_non_root(&left, &right, Mode::Hash));
    }
}
