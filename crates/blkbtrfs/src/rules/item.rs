//! An item to check, the context of the rules, and the comparisons that rules consist of.

use std::fmt::Display;

use crate::chunk::ChunkMap;
use crate::superblock::Superblock;
use crate::tree::Key;

/// Context of the rules.
pub(crate) struct Rules<'a> {
    pub(super) superblock: &'a Superblock,
    pub(super) chunks: &'a ChunkMap,
    pub(super) checksum_size: usize,
}

/// An item and its predecessor in the leaf.
pub(super) struct Item<'a> {
    pub(super) key: Key,
    pub(super) bytes: &'a [u8],
    pub(super) before: Option<(Key, &'a [u8])>,
    /// Tree from which the leaf was reached.
    pub(super) tree: u64,
}

/// Reason for refusing an item.
pub(super) type Verdict = Result<(), String>;

impl<'a> Rules<'a> {
    pub(crate) fn new(
        superblock: &'a Superblock,
        chunks: &'a ChunkMap,
        checksum_size: usize,
    ) -> Self {
        Self { superblock, chunks, checksum_size }
    }

    /// Returns whether a sector begins at `address`.
    pub(super) fn is_aligned(&self, address: u64) -> bool {
        address.is_multiple_of(self.superblock.sector_size.into())
    }

    /// Fails if no sector begins at `address`.
    pub(super) fn aligned(&self, what: &str, address: u64) -> Verdict {
        if self.is_aligned(address) {
            return Ok(());
        }
        Err(format!("{what} {address} is not at a sector of {}", self.superblock.sector_size))
    }

    /// Fails if a transaction is in the future. A log belongs to the next transaction, which was
    /// not committed.
    pub(super) fn generation(&self, what: &str, generation: u64) -> Verdict {
        let most = self.superblock.generation.saturating_add(1);
        at_most(what, generation, most)
    }

    /// Fails if no chunk contains the range.
    pub(super) fn in_chunk(&self, what: &str, start: u64, length: u64) -> Verdict {
        match self.chunks.find_range(start, length.max(1)) {
            Some(_) => Ok(()),
            None => Err(format!("{what} of {length} bytes at {start} is in no chunk")),
        }
    }
}

pub(super) fn exact(bytes: &[u8], size: usize) -> Verdict {
    match bytes.len() {
        found if found == size => Ok(()),
        found => Err(format!("has {found} bytes, expected {size}")),
    }
}

pub(super) fn at_least(bytes: &[u8], size: usize) -> Verdict {
    match bytes.len() {
        found if found >= size => Ok(()),
        found => Err(format!("has {found} bytes, expected at least {size}")),
    }
}

pub(super) fn at_most(what: &str, found: u64, most: u64) -> Verdict {
    if found <= most { Ok(()) } else { Err(format!("{what} is {found}, at most {most}")) }
}

pub(super) fn expect<T: PartialEq + Display>(what: &str, found: &T, expected: &T) -> Verdict {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found}, expected {expected}")) }
}

/// Returns a field that [`exact`] or [`at_least`] has already checked.
pub(super) fn field<T>(value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| "is cut off".to_owned())
}
