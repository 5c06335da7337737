//! An item as rules see it, what they depend on, and the comparisons that they are made of.

use std::fmt::Display;

use crate::chunk::ChunkMap;
use crate::superblock::Superblock;
use crate::tree::Key;

/// What the rules depend on.
pub(crate) struct Rules<'a> {
    pub(super) superblock: &'a Superblock,
    pub(super) chunks: &'a ChunkMap,
    pub(super) checksum_size: usize,
}

/// An item and what stands before it in its leaf.
pub(super) struct Item<'a> {
    pub(super) key: Key,
    pub(super) bytes: &'a [u8],
    pub(super) before: Option<(Key, &'a [u8])>,
    /// Tree that its leaf was reached from.
    pub(super) tree: u64,
}

/// The reason that an item is refused for.
pub(super) type Verdict = Result<(), String>;

impl<'a> Rules<'a> {
    pub(crate) fn new(
        superblock: &'a Superblock,
        chunks: &'a ChunkMap,
        checksum_size: usize,
    ) -> Self {
        Self { superblock, chunks, checksum_size }
    }

    /// Whether `address` is one where a sector begins.
    pub(super) fn is_aligned(&self, address: u64) -> bool {
        address.is_multiple_of(self.superblock.sector_size.into())
    }

    /// Fails if `address` is not one where a sector begins.
    pub(super) fn aligned(&self, what: &str, address: u64) -> Verdict {
        if self.is_aligned(address) {
            return Ok(());
        }
        Err(format!("{what} {address} is not at a sector of {}", self.superblock.sector_size))
    }

    /// Fails if a transaction is one that there cannot be yet. A log belongs to the one that was not
    /// committed.
    pub(super) fn generation(&self, what: &str, generation: u64) -> Verdict {
        let most = self.superblock.generation.saturating_add(1);
        at_most(what, generation, most)
    }

    /// Fails if no chunk holds a range.
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

/// A field that [`exact`] or [`at_least`] has made sure of.
pub(super) fn field<T>(value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| "is cut off".to_owned())
}
