//! Blocks hashed many at a time.

use crate::zero::is_zero;
use crate::{Digest, Digester, Parameters, State};

/// The digests of consecutive blocks, runs of zero blocks as counts.
#[derive(Clone, Debug, Default)]
pub struct BlockDigests {
    runs: Vec<Run<usize>>,
    digests: Vec<u8>,
    length: u64,
}

/// Consecutive blocks of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run<D> {
    /// Their digests, or how many bytes those are.
    Digests(D),
    /// So many whole blocks of zeros.
    ZeroBlocks(u64),
}

impl BlockDigests {
    /// Appends `count` whole zero blocks of `block_size` bytes.
    pub fn push_zero_blocks(&mut self, count: u64, block_size: usize) {
        if count == 0 {
            return;
        }
        match self.runs.last_mut() {
            Some(Run::ZeroBlocks(before)) => *before += count,
            _ => self.runs.push(Run::ZeroBlocks(count)),
        }
        self.length += count * block_size as u64;
    }

    /// Appends a block of `length` bytes.
    pub fn push(&mut self, digest: &Digest, length: u64) {
        self.digest_slots(digest.as_bytes().len()).copy_from_slice(digest.as_bytes());
        self.length += length;
    }

    /// Bytes of content that the blocks cover.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Forgets all blocks and keeps the memory.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.digests.clear();
        self.length = 0;
    }

    /// The digests in order.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run<&[u8]>> {
        let mut digests = self.digests.as_slice();
        self.runs.iter().map(move |run| match *run {
            Run::ZeroBlocks(count) => Run::ZeroBlocks(count),
            Run::Digests(length) => {
                let (these, rest) = digests.split_at(length);
                digests = rest;
                Run::Digests(these)
            }
        })
    }

    /// Makes room for `length` bytes of digests at the end.
    fn digest_slots(&mut self, length: usize) -> &mut [u8] {
        match self.runs.last_mut() {
            Some(Run::Digests(before)) => *before += length,
            _ => self.runs.push(Run::Digests(length)),
        }
        let start = self.digests.len();
        self.digests.resize(start + length, 0);
        &mut self.digests[start..]
    }
}

/// Hashes blocks for one set of parameters.
#[derive(Clone, Debug)]
pub struct BlockHasher {
    digester: Digester,
    start: State,
    block_size: usize,
}

impl BlockHasher {
    /// A hasher for `parameters`.
    pub fn new(parameters: &Parameters) -> Self {
        Self::with_digester(parameters, &Digester::new(parameters.algorithm()))
    }

    /// The same with a choice of implementations.
    ///
    /// # Panics
    ///
    /// If the digester is of another algorithm than the parameters.
    pub fn with_digester(parameters: &Parameters, digester: &Digester) -> Self {
        assert_eq!(digester.algorithm(), parameters.algorithm());
        let (start, block_size) = (digester.start(), parameters.block_size());
        Self { digester: digester.clone(), start, block_size }
    }

    /// Length of a block in bytes.
    pub(crate) fn block_size(&self) -> usize {
        self.block_size
    }

    /// Appends the blocks that are handed to the batch to `digests`.
    pub fn batch<'a>(&'a self, digests: &'a mut BlockDigests) -> Batch<'a> {
        Batch { hasher: self, lanes: [&[]; LANES], filled: 0, digests }
    }
}

/// Collects blocks until they fill the lanes of a kernel. Zero blocks in between take no lane.
pub struct Batch<'a> {
    hasher: &'a BlockHasher,
    lanes: [&'a [u8]; LANES],
    filled: usize,
    digests: &'a mut BlockDigests,
}

impl<'a> Batch<'a> {
    /// Appends the blocks of `content`; the last one may be short.
    pub fn content(&mut self, content: &'a [u8]) {
        for block in content.chunks(self.hasher.block_size) {
            self.block(block);
        }
    }

    /// Appends a block.
    pub fn block(&mut self, block: &'a [u8]) {
        if block.len() == self.hasher.block_size && is_zero(block) {
            return self.zero_blocks(1);
        }
        if self.filled == LANES || (self.filled > 0 && self.lanes[0].len() != block.len()) {
            self.hash_lanes();
        }
        self.lanes[self.filled] = block;
        self.filled += 1;
        self.digests.digest_slots(self.hasher.digester.algorithm().digest_size());
        self.digests.length += block.len() as u64;
    }

    /// Appends `count` whole blocks of zeros.
    pub fn zero_blocks(&mut self, count: u64) {
        self.digests.push_zero_blocks(count, self.hasher.block_size);
    }

    /// Hashes what is still waiting.
    pub fn finish(mut self) {
        self.hash_lanes();
    }

    /// Hashes the waiting blocks into their slots, the last ones made.
    fn hash_lanes(&mut self) {
        let size = self.hasher.digester.algorithm().digest_size();
        let slots = self.digests.digests.len() - self.filled * size;
        self.hasher.digester.finish_many(
            &self.hasher.start,
            &self.lanes[..self.filled],
            &mut self.digests.digests[slots..],
        );
        self.filled = 0;
    }
}

/// Blocks handed to a kernel at once: a multiple of the lanes of any.
const LANES: usize = 64;
