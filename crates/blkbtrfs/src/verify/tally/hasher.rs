//! Keyed hash for the sums.

use std::hash::{BuildHasher, Hash, RandomState};

/// Hashes with a random key, so that an image cannot be crafted to make two sums equal.
pub(super) struct Hasher(RandomState);

impl Hasher {
    pub(super) fn new() -> Self {
        Self(RandomState::new())
    }

    /// Returns an odd number, whose multiples are zero only for a count of zero.
    pub(super) fn hash(&self, value: impl Hash) -> u64 {
        self.0.hash_one(value) | 1
    }
}
