//! Digests of blocks, in order.

use crate::Digest;

/// The digests of consecutive blocks, with zero runs as counts.
#[derive(Clone, Debug, Default)]
pub struct BlockDigests {
    runs: Vec<Stored>,
    digests: Vec<u8>,
    length: u64,
}

/// Consecutive blocks of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run<'a> {
    /// Hashed blocks.
    Digests {
        /// Number of blocks.
        count: u64,
        /// The digests of the blocks, one after the other.
        digests: &'a [u8],
    },
    /// Whole zero blocks.
    Zeros {
        /// Number of blocks.
        count: u64,
    },
}

/// A [`Run`], with the length of its digests.
#[derive(Clone, Copy, Debug)]
enum Stored {
    Digests { count: u64, size: usize },
    Zeros { count: u64 },
}

impl BlockDigests {
    /// Appends `count` whole zero blocks of `block_size` bytes.
    pub fn push_zero_blocks(&mut self, count: u64, block_size: usize) {
        if count == 0 {
            return;
        }
        match self.runs.last_mut() {
            Some(Stored::Zeros { count: before }) => *before += count,
            _ => self.runs.push(Stored::Zeros { count }),
        }
        self.length += count * block_size as u64;
    }

    /// Appends the digest of a block of `length` bytes.
    pub fn push(&mut self, digest: &Digest, length: u64) {
        self.slot(digest.as_bytes().len(), length).copy_from_slice(digest.as_bytes());
    }

    /// Appends the digests of hashed blocks of `length` bytes in all, one after the other, each of
    /// `digest_size` bytes.
    ///
    /// # Panics
    ///
    /// Panics if `digests` is not a whole number of digests.
    pub fn extend(&mut self, digests: &[u8], digest_size: usize, length: u64) {
        assert!(digests.len().is_multiple_of(digest_size), "a whole number of digests");
        let added = (digests.len() / digest_size) as u64;
        match self.runs.last_mut() {
            _ if added == 0 => return,
            Some(Stored::Digests { count, size }) => {
                *count += added;
                *size += digests.len();
            }
            _ => self.runs.push(Stored::Digests { count: added, size: digests.len() }),
        }
        self.digests.extend_from_slice(digests);
        self.length += length;
    }

    /// Returns the number of bytes that the blocks cover.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the blocks in order, in the longest possible runs.
    pub fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        let mut digests = self.digests.as_slice();
        self.runs.iter().map(move |run| match *run {
            Stored::Zeros { count } => Run::Zeros { count },
            Stored::Digests { count, size } => {
                let (these, rest) = digests.split_at(size);
                digests = rest;
                Run::Digests { count, digests: these }
            }
        })
    }

    /// Removes all blocks and keeps the memory.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.digests.clear();
        self.length = 0;
    }

    /// Appends a block of `length` bytes, and returns the place for its digest.
    pub(crate) fn slot(&mut self, digest_size: usize, length: u64) -> &mut [u8] {
        match self.runs.last_mut() {
            Some(Stored::Digests { count, size }) => {
                *count += 1;
                *size += digest_size;
            }
            _ => self.runs.push(Stored::Digests { count: 1, size: digest_size }),
        }
        self.length += length;
        let start = self.digests.len();
        self.digests.resize(start + digest_size, 0);
        &mut self.digests[start..]
    }

    /// Returns the last `size` bytes of digests, which belong to the last hashed blocks.
    pub(crate) fn last_slots(&mut self, size: usize) -> &mut [u8] {
        let start = self.digests.len() - size;
        &mut self.digests[start..]
    }
}
