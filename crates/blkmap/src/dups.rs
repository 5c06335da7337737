//! Counts blocks that occur more than once.

use std::thread;

use blkhash::Strength;

use crate::diff::check_parameters;
use crate::{BlockRun, Error, Header, Map, Result};

/// The different digests of blocks of several maps, to count how many blocks are equal.
///
/// All digests are kept up to 32 Mi of them, 512 MiB. Above, only those whose low bits are zero are kept, the
/// same for all maps, and the counts are estimates. The share that is kept does not depend on how often a digest
/// occurs, so a few blocks that are repeated very often do not distort them.
#[derive(Debug)]
pub struct Dups {
    /// The first 128 bits of digests. Some may occur twice.
    prefixes: Vec<u128>,
    /// Maximum number of prefixes.
    limit: usize,
    /// Number of low bits that are zero in each of them.
    bits: u32,
    /// The digests of short last blocks, and their lengths.
    short: Vec<(u128, u64)>,
    zero_blocks: u64,
    data_blocks: u64,
    unknown_blocks: u64,
    /// The parameters of the first map.
    header: Option<Header>,
}

/// The number of blocks that are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DupsSummary {
    /// Number of known blocks.
    pub blocks: u64,
    /// Number of zero blocks.
    pub zero_blocks: u64,
    /// Number of different blocks that are not zero.
    pub different: u64,
    /// Number of blocks that are not zero and equal an earlier one.
    pub repeated: u64,
    /// Number of blocks that their map does not know.
    pub unknown_blocks: u64,
    /// Bytes of the repeated blocks.
    pub repeated_bytes: u64,
    /// The part of all digests that was compared: one of this many.
    pub sampled: u64,
}

impl Default for Dups {
    fn default() -> Self {
        Self::with_limit(MAX_KEPT)
    }
}

impl Dups {
    fn with_limit(limit: usize) -> Self {
        Self {
            prefixes: Vec::new(),
            limit,
            bits: 0,
            short: Vec::new(),
            zero_blocks: 0,
            data_blocks: 0,
            unknown_blocks: 0,
            header: None,
        }
    }

    /// Adds the blocks of a map.
    ///
    /// # Errors
    ///
    /// Fails if equal digests do not mean equal blocks, if the parameters differ from the first map's, or
    /// if the map cannot be read or is damaged. In the last case, the counts have a part of the map.
    pub fn add(&mut self, map: &Map) -> Result<()> {
        let algorithm = map.header().algorithm;
        if algorithm.properties().strength != Strength::Cryptographic {
            let reason = format!("has digests of {algorithm}, which may be equal for other blocks");
            return Err(Error::Unsupported(reason));
        }
        check_parameters(self.header.get_or_insert(*map.header()), map.header())?;
        let mut blocks = map.blocks()?;
        self.reserve(map);
        let entry_size = map.header().entry_size();
        let last = map.commit().blocks.saturating_sub(1);
        while let Some(run) = blocks.next(u64::MAX)? {
            match run {
                BlockRun::Zeros { count, .. } => {
                    self.zero_blocks = self.zero_blocks.saturating_add(count);
                }
                BlockRun::Unknown { count, .. } => {
                    self.unknown_blocks = self.unknown_blocks.saturating_add(count);
                }
                BlockRun::Digests { first, entries } => {
                    for (block, entry) in (first..).zip(entries.chunks_exact(entry_size)) {
                        if map.is_zero_block(block, entry) {
                            self.zero_blocks = self.zero_blocks.saturating_add(1);
                            continue;
                        }
                        self.data_blocks += 1;
                        let prefix = entry.first_chunk().expect("a digest of 16 bytes or more");
                        let prefix = u128::from_le_bytes(*prefix);
                        let length = map.block_length(block);
                        if block == last && length < map.header().block_size.get() {
                            self.short.push((prefix, length as u64));
                        }
                        self.push(prefix);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the counts.
    pub fn summary(mut self) -> DupsSummary {
        sort_and_dedup(&mut self.prefixes);
        // Digests that were made up may end with more zeros than these 64 bits.
        let sampled = 1_u64.checked_shl(self.bits).unwrap_or(u64::MAX);
        // Each of the digests that are kept stands for this many.
        let different = (self.prefixes.len() as u64).saturating_mul(sampled).min(self.data_blocks);
        let repeated = self.data_blocks - different;
        let block_size = self.header.map_or(0, |header| u64::from(header.block_size));
        let bytes = repeated.saturating_mul(block_size);
        DupsSummary {
            blocks: self.data_blocks.saturating_add(self.zero_blocks),
            zero_blocks: self.zero_blocks,
            different,
            repeated,
            unknown_blocks: self.unknown_blocks,
            repeated_bytes: bytes.saturating_sub(self.missing_bytes(block_size)),
            sampled,
        }
    }

    /// Returns how many bytes repeated short blocks have less than whole ones.
    fn missing_bytes(&mut self, block_size: u64) -> u64 {
        self.short.sort_unstable();
        let repeated = self.short.windows(2).filter(|pair| pair[0] == pair[1]);
        repeated.map(|pair| block_size - pair[1].1).sum()
    }

    /// Makes room for the digests of a map at once, because growing step by step would copy them and take up to
    /// three times the memory. The size is bounded by the number of pages that the file says it has, and by the
    /// limit.
    fn reserve(&mut self, map: &Map) {
        let blocks = map.commit().stored_pages.saturating_mul(map.header().blocks_per_page());
        let room = self.limit - self.prefixes.len();
        let blocks = usize::try_from(blocks).unwrap_or(usize::MAX).min(room);
        self.prefixes.reserve_exact(blocks);
    }

    fn push(&mut self, prefix: u128) {
        if prefix.trailing_zeros() < self.bits {
            return;
        }
        if self.prefixes.len() == self.limit {
            self.make_room();
            return self.push(prefix);
        }
        self.prefixes.push(prefix);
    }

    /// Removes repeated prefixes, and then halves the sample until a quarter is free. More often would sort too
    /// much for what becomes free.
    fn make_room(&mut self) {
        sort_and_dedup(&mut self.prefixes);
        while self.prefixes.len() > self.limit / 4 * 3 {
            self.bits += 1;
            let bits = self.bits;
            self.prefixes.retain(|prefix| prefix.trailing_zeros() >= bits);
        }
    }
}

/// Sorts on two threads if that pays off.
fn sort_and_dedup(prefixes: &mut Vec<u128>) {
    if prefixes.len() < PARALLEL {
        prefixes.sort_unstable();
    } else {
        let middle = prefixes.len() / 2;
        let (low, _, high) = prefixes.select_nth_unstable(middle);
        let is_started = thread::scope(|scope| {
            let started = thread::Builder::new().spawn_scoped(scope, || low.sort_unstable());
            high.sort_unstable();
            started.is_ok()
        });
        if !is_started {
            prefixes.sort_unstable();
        }
    }
    prefixes.dedup();
}

/// Maximum number of digests that are kept to count equal blocks, 512 MiB of them. Above it, the counts are
/// estimates.
/// Limit in digests.
const MAX_KEPT: usize = 1 << 25;

/// Number of digests from which a second thread helps.
const PARALLEL: usize = 1 << 17;

#[cfg(test)]
mod tests;
