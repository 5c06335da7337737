//! Records visited tree blocks and the properties in the references to them.
//!
//! A good block is recorded with digests of the reference by which it was found. A later reference
//! is compared with these without reading the block again. This takes 16 bytes for each block, or
//! at most 40 bytes with the overhead of the table. Only blocks that exist, with valid checksums
//! and their own address, are recorded there. The records of other blocks are limited in number,
//! because the blocks of a node's pointers need not exist.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::tree::{Expected, object};

/// Result of verifying a block for a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Exists and matches the reference.
    Good,
    /// Does not match the reference. May be good for another reference.
    Wrong,
    /// Cannot be read, or is good for no reference.
    Lost,
}

/// Known facts about a block, relative to a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// The block was not visited yet.
    New,
    /// The block was found by an equal reference.
    Same,
    /// The block was found by a reference that differs only in the upper limit of the block's keys.
    /// Nodes that share a block may have different keys after it.
    OtherEnd,
    /// The block was found by a different reference, so one of the two is wrong.
    Other,
    /// The block was already reported.
    Reported,
}

/// The visited blocks.
pub(super) struct Known {
    good: HashMap<u64, Digest>,
    /// Leaves that a thread is verifying.
    in_flight: HashMap<u64, Digest>,
    wrong: HashMap<u64, Digest>,
    lost: Addresses,
    /// Has a random key, so that an image cannot be crafted to give two references equal digests.
    hasher: RandomState,
}

/// Digests of the properties in a reference, and of the upper limit of the block's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digest {
    block: u32,
    end: u32,
}

impl Known {
    pub(super) fn new() -> Self {
        Self {
            good: HashMap::new(),
            in_flight: HashMap::new(),
            wrong: HashMap::new(),
            lost: Addresses::default(),
            hasher: RandomState::new(),
        }
    }

    /// Returns what is known of the block of a reference.
    pub(super) fn look(&self, reference: &Expected, sector_size: u64) -> Look {
        let (logical, digest) = (reference.logical, self.digest(reference));
        if let Some(known) = self.good.get(&logical).or_else(|| self.in_flight.get(&logical)) {
            return match () {
                () if *known == digest => Look::Same,
                () if known.block == digest.block => Look::OtherEnd,
                () => Look::Other,
            };
        }
        let is_reported =
            self.wrong.get(&logical) == Some(&digest) || self.lost.contains(logical, sector_size);
        if is_reported { Look::Reported } else { Look::New }
    }

    /// Returns whether the block needs no further visit by any reference.
    pub(super) fn is_done(&self, logical: u64, sector_size: u64) -> bool {
        self.good.contains_key(&logical) || self.lost.contains(logical, sector_size)
    }

    /// Returns whether the block did not match a reference.
    pub(super) fn is_wrong(&self, logical: u64) -> bool {
        self.wrong.contains_key(&logical)
    }

    /// Records that a leaf is handed out.
    pub(super) fn start(&mut self, reference: &Expected) {
        let digest = self.digest(reference);
        self.in_flight.insert(reference.logical, digest);
    }

    /// Records the result for a block.
    pub(super) fn finish(&mut self, reference: &Expected, outcome: Outcome, sector_size: u64) {
        let (logical, digest) = (reference.logical, self.digest(reference));
        if self.in_flight.get(&logical) == Some(&digest) {
            self.in_flight.remove(&logical);
        }
        match outcome {
            Outcome::Good => {
                self.good.insert(logical, digest);
            }
            Outcome::Wrong if self.wrong.len() < MAX_WRONG => {
                self.wrong.insert(logical, digest);
            }
            Outcome::Wrong => {}
            Outcome::Lost => self.lost.insert(logical, sector_size),
        }
    }

    fn digest(&self, reference: &Expected) -> Digest {
        let Expected { tree, level, generation, first_key, end, parent, .. } = *reference;
        let is_of_root = first_key.is_none() && parent.is_some();
        // File trees share blocks, except for their roots.
        let owner = if object::is_file_tree(tree) && !is_of_root { object::FS_TREE } else { tree };
        let block = self.hasher.hash_one((owner, level, generation, first_key));
        Digest { block: block as u32, end: self.hasher.hash_one(end) as u32 }
    }
}

/// A set of sectors, stored as bits in pages.
///
/// Tree blocks are usually adjacent, so a page takes less memory than one of its blocks. Forged
/// addresses are scattered, so the number of pages is limited.
#[derive(Default)]
struct Addresses {
    pages: HashMap<u64, Box<[u64; PAGE_WORDS]>>,
}

impl Addresses {
    fn insert(&mut self, logical: u64, sector_size: u64) {
        let (page, word, bit) = Self::place(logical, sector_size);
        if self.pages.len() < MAX_PAGES || self.pages.contains_key(&page) {
            self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE_WORDS]))[word] |= bit;
        }
    }

    fn contains(&self, logical: u64, sector_size: u64) -> bool {
        let (page, word, bit) = Self::place(logical, sector_size);
        self.pages.get(&page).is_some_and(|page| page[word] & bit != 0)
    }

    fn place(logical: u64, sector_size: u64) -> (u64, usize, u64) {
        let sector = logical / sector_size;
        let page = sector / (64 * PAGE_WORDS as u64);
        (page, (sector / 64) as usize % PAGE_WORDS, 1 << (sector % 64))
    }
}

/// Each page covers 16 MiB of addresses with sectors of 4 KiB.
const PAGE_WORDS: usize = 64;

/// Maximum number of pages that record the addresses of lost tree blocks. They take 5 MiB of
/// memory, and cover 128 GiB of adjacent tree blocks.
/// Limit in pages.
const MAX_PAGES: usize = 8 << 10;

/// Maximum number of recorded wrong references, less than 1 MiB. Each is an error. Further
/// references to such blocks are verified and reported again.
/// Limit in references.
const MAX_WRONG: usize = 16 << 10;
