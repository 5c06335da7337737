//! Whether the names in directories are those in the MFT.
//!
//! Each name is stored twice: in the record of the file, and as a key in the index of the directory. They are compared without being
//! kept: for each directory, hashes of the ones are added to a sum from which hashes of the others are subtracted.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use super::attribute::FileName;
use super::record::Reference;

/// Sums of hashes, of names in the MFT less those in indexes.
pub(super) struct Balance {
    /// By the number of the directory. Several share one if there are more directories than sums.
    sums: Vec<u64>,
    hashes: RandomState,
}

impl Balance {
    /// Makes one for an MFT of a number of records.
    pub fn new(records: u64) -> Self {
        let count = records.clamp(1, MAX_SUMS) as usize;
        Self { sums: vec![0; count], hashes: RandomState::new() }
    }

    /// Adds a name that the record of a file has.
    pub fn add(&mut self, file: Reference, name: &FileName<'_>) {
        let hash = self.hash(file, name);
        let sum = self.sum(name.parent.number);
        *sum = sum.wrapping_add(hash);
    }

    /// Subtracts a name that the index of a directory has.
    pub fn subtract(&mut self, directory: u64, file: Reference, name: &FileName<'_>) {
        let hash = self.hash(file, name);
        let sum = self.sum(directory);
        *sum = sum.wrapping_sub(hash);
    }

    /// Returns the directories that do not agree with the MFT. A number also stands for those that are larger by a multiple of
    /// [`modulus`](Self::modulus).
    pub fn differences(&self) -> impl Iterator<Item = u64> + '_ {
        (0..).zip(&self.sums).filter(|(_, sum)| **sum != 0).map(|(number, _)| number)
    }

    /// Returns the number of directories that have a sum of their own.
    pub fn modulus(&self) -> u64 {
        self.sums.len() as u64
    }

    fn hash(&self, file: Reference, name: &FileName<'_>) -> u64 {
        let key = |it: Reference| it.number | u64::from(it.sequence) << 48;
        self.hashes.hash_one((key(file), key(name.parent), name.space, name.name))
    }

    fn sum(&mut self, directory: u64) -> &mut u64 {
        let count = self.sums.len() as u64;
        &mut self.sums[(directory % count) as usize]
    }
}

/// Maximum number of sums, of 8 bytes each.
/// Limit in sums.
const MAX_SUMS: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_that_differ() {
        let directory = |number| Reference { number, sequence: 1 };
        let name = |parent, name| FileName { parent: directory(parent), space: 1, name };
        let file = |number| Reference { number, sequence: 7 };
        let mut balance = Balance::new(64);
        for (number, text) in [(30, b"a\0"), (31, b"b\0"), (31, b"c\0")] {
            balance.add(file(number), &name(5, text));
        }
        assert_eq!(balance.differences().collect::<Vec<_>>(), [5]);
        for (number, text) in [(31, b"c\0"), (30, b"a\0"), (31, b"b\0")] {
            balance.subtract(5, file(number), &name(5, text));
        }
        assert_eq!(balance.differences().count(), 0);
        balance.add(file(40), &name(6, b"x\0"));
        balance.subtract(7, file(40), &name(6, b"x\0"));
        balance.subtract(8 + 64, file(41), &name(8, b"x\0"));
        assert_eq!(balance.differences().collect::<Vec<_>>(), [6, 7, 8]);
    }
}
