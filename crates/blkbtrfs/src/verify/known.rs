//! Which tree blocks were looked at, and what the references to them say.
//!
//! A good block is kept with digests of the reference that it was found by, so that a later
//! reference is held against the block without another look at it: 16 bytes a block, and at most 40
//! with the table around them. Only blocks that are stored, with right checksums and their own
//! address, are kept. What is kept of the others is limited: of all that a node points to, nothing
//! has to be there.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::tree::{Expected, object};

/// What came of a block that a reference leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is there and what the reference says.
    Good,
    /// It is something else: for another reference it may be good.
    Wrong,
    /// It is good for no reference, or nobody can read it.
    Lost,
}

/// What is known of the block that a reference leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing.
    New,
    /// It was found by a reference that says the same.
    Same,
    /// It was found by a reference that says the same but for where the keys of the block end: those
    /// that share a block may stand before others.
    OtherEnd,
    /// It was found by a reference that says something else: one of them is wrong.
    Other,
    /// It was reported.
    Reported,
}

/// The blocks that were looked at.
pub(super) struct Known {
    good: HashMap<u64, Digest>,
    /// Leaves that a thread is looking at.
    in_flight: HashMap<u64, Digest>,
    wrong: HashMap<u64, Digest>,
    lost: Addresses,
    /// Has a key of its own, so that no image can be made for two references to have one digest.
    hasher: RandomState,
}

/// What a reference says about a block, and where the keys of the block end.
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

    /// Tells what is known of the block that a reference leads to.
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

    /// Whether the block needs no other look, whatever leads to it.
    pub(super) fn is_done(&self, logical: u64, sector_size: u64) -> bool {
        self.good.contains_key(&logical) || self.lost.contains(logical, sector_size)
    }

    /// Whether the block was found not to be what a reference says.
    pub(super) fn is_wrong(&self, logical: u64) -> bool {
        self.wrong.contains_key(&logical)
    }

    /// A leaf is handed out.
    pub(super) fn start(&mut self, reference: &Expected) {
        let digest = self.digest(reference);
        self.in_flight.insert(reference.logical, digest);
    }

    /// Takes what came of a block.
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
        // File trees share blocks, but for their roots.
        let owner = if object::is_file_tree(tree) && !is_of_root { object::FS_TREE } else { tree };
        let block = self.hasher.hash_one((owner, level, generation, first_key));
        Digest { block: block as u32, end: self.hasher.hash_one(end) as u32 }
    }
}

/// A set of sectors: one bit each, in pages.
///
/// Tree blocks lie side by side, so that a page costs less than any of the blocks that it is made
/// for. Addresses that were made up are all over the place: with too many pages there are no more.
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

/// 16 MiB of addresses in sectors of 4 KiB.
const PAGE_WORDS: usize = 64;

/// 5 MiB of memory; all that was lost of 128 GiB of tree blocks side by side.
const MAX_PAGES: usize = 8 << 10;

/// Wrong references that are kept so as not to be reported again: less than 1 MiB. Each is an
/// error, and a file system that has more is read once more for each.
const MAX_WRONG: usize = 16 << 10;
