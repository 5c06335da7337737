//! Entries of a directory: which pages are known, and where they are.

use crate::PAGE;
use crate::bytes::u64_at;

/// Consecutive pages that are stored one after the other, or consist of zero blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// Number of the first page.
    pub first: u64,
    /// Number of pages, not 0.
    pub count: u64,
    /// Offset of the first page in the file, 0 if all blocks are whole blocks of zeros.
    pub offset: u64,
    /// Index of the hash of the first page, 0 for zeros.
    pub first_hash: u64,
}

impl PageRun {
    /// Length of an entry in bytes.
    pub(crate) const SIZE: usize = 32;

    /// Returns whether all blocks are zeros.
    pub fn is_zero(&self) -> bool {
        self.offset == 0
    }

    /// Returns the number of the page after the run.
    pub fn end(&self) -> u64 {
        self.first + self.count
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::SIZE] {
        let fields = [self.first, self.count, self.offset, self.first_hash];
        let mut bytes = [0; Self::SIZE];
        for (slot, field) in bytes.chunks_exact_mut(8).zip(fields) {
            slot.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Returns the entry if `count` page hashes come before its table's.
    pub(crate) fn behind(self, count: u64) -> Self {
        let first_hash = if self.is_zero() { 0 } else { self.first_hash + count };
        Self { first_hash, ..self }
    }

    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let [first, count, offset, first_hash] = [0, 8, 16, 24].map(|at| u64_at(bytes, at));
        Self { first, count, offset, first_hash }
    }
}

impl PageRun {
    /// Returns whether `next` continues where this entry ends, so that both are one.
    pub(crate) fn goes_on_in(&self, next: &Self) -> bool {
        self.end() == next.first
            && match (self.is_zero(), next.is_zero()) {
                (true, true) => true,
                (false, false) => self.offset + self.count * PAGE as u64 == next.offset,
                _ => false,
            }
    }
}
