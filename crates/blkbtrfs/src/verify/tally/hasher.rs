//! The hash that sums are made of.

use std::hash::{BuildHasher, Hash, RandomState};

/// Hashes with a key of its own, so that no image can be made for two sums to be equal.
pub(super) struct Hasher(RandomState);

impl Hasher {
    pub(super) fn new() -> Self {
        Self(RandomState::new())
    }

    /// An odd number: a multiple of it is zero for no count but zero.
    pub(super) fn hash(&self, value: impl Hash) -> u64 {
        self.0.hash_one(value) | 1
    }
}
