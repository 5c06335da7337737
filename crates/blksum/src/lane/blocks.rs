//! Hashes blocks, many at a time. Zero blocks are not hashed.

use blkhash::engine::{Accumulator, Batch, BlockPieces, Ordered, Shares, Stopped};
use blkhash::{BlockDigests, Digest, Digester, Leaf, Parameters};

use super::{BlockHasher, Checksum, DynSink, HandIn, LONG_RUN, Lane, Needed, Parts, ZeroRuns};
use crate::memory::Data;
use crate::plan::{Chunk, Piece, ZeroLimits};
use crate::tuning::MAX_BUFFER;

pub(crate) struct BlockLane<'s> {
    hasher: BlockHasher<'s>,
    ordered: Ordered<BlockDigests, DynSink<'s>>,
}

impl<'s> BlockLane<'s> {
    pub(crate) fn new(hasher: BlockHasher<'s>, sink: DynSink<'s>, window: usize) -> Self {
        Self { hasher, ordered: Ordered::new(sink, window) }
    }
}

impl Lane for BlockLane<'_> {
    fn unit(&self) -> u64 {
        self.hasher.leaf.block_size() as u64
    }

    fn shares(&self, threads: usize) -> Option<Shares> {
        let leaf = self.hasher.leaf;
        Some(Shares::new(threads, leaf.digester(), leaf.block_size(), MAX_BUFFER))
    }

    fn zero_limits(&self) -> ZeroLimits {
        let unit = self.unit();
        ZeroLimits {
            piece: match self.hasher.zero_runs {
                ZeroRuns::Hashes => ZERO_BLOCKS_AT_ONCE * unit,
                ZeroRuns::Skips | ZeroRuns::Unknown => u64::MAX,
            },
            alone: LONG_RUN * unit,
            total: match self.hasher.zero_runs {
                ZeroRuns::Skips => u64::MAX,
                ZeroRuns::Hashes | ZeroRuns::Unknown => MAX_ZERO_BLOCKS.saturating_mul(unit),
            },
        }
    }

    fn hash<'a>(&'a self, chunk: &'a Chunk, mut data: Data<'_>) -> HandIn<'a> {
        let leaf = self.hasher.leaf;
        let mut digests = self.ordered.empty();
        let mut batch = Batch::new(leaf, &mut digests);
        for piece in &chunk.pieces {
            match *piece {
                Piece::Zeros { length, .. } => {
                    batch.zero_blocks(length / leaf.block_size() as u64);
                }
                Piece::Data { length, .. } => data.next(length, |part| batch.update(part)),
            }
        }
        batch.finish();
        Box::new(|_| self.ordered.hand_in(chunk.number, digests))
    }

    fn parts<'a>(
        &'a self,
        chunk: &Chunk,
        buffer_size: usize,
    ) -> Result<Box<dyn Parts + 'a>, Stopped> {
        let leaf = self.hasher.leaf;
        Ok(Box::new(BlockParts {
            leaf,
            block: (leaf.block_size() > buffer_size)
                .then(|| Box::new(BlockPieces::new(leaf.clone()))),
            number: chunk.number,
            digests: self.ordered.empty(),
            ordered: &self.ordered,
        }))
    }

    fn abandon(&self) {
        self.ordered.abandon();
    }

    fn finish(self: Box<Self>) -> bool {
        self.ordered.finish().is_ok()
    }
}

struct BlockParts<'a, 's> {
    leaf: &'a Leaf,
    /// Block in progress, if blocks are longer than a part.
    block: Option<Box<BlockPieces>>,
    number: u64,
    digests: BlockDigests,
    ordered: &'a Ordered<BlockDigests, DynSink<'s>>,
}

impl Parts for BlockParts<'_, '_> {
    fn update(&mut self, part: &[u8], is_last: bool) {
        let Some(block) = &mut self.block else {
            let mut batch = Batch::new(self.leaf, &mut self.digests);
            batch.update(part);
            return batch.finish();
        };
        block.update(part);
        let (length, block_size) = (block.length(), self.leaf.block_size());
        if length == block_size as u64 && block.is_zero() {
            block.skip();
            self.digests.push_zero_blocks(1, block_size);
        } else if length == block_size as u64 || is_last {
            self.digests.push(&block.finish(), length);
        }
    }

    fn zero(&mut self, length: u64) {
        let block_size = self.leaf.block_size();
        self.digests.push_zero_blocks(length / block_size as u64, block_size);
    }

    fn hand_in(self: Box<Self>) -> Result<(), Stopped> {
        self.ordered.hand_in(self.number, self.digests)
    }
}

/// A checksum of the digests of blocks.
pub(crate) struct Folded {
    leaf: Leaf,
    zero_runs: ZeroRuns,
    accumulator: Accumulator,
}

impl Folded {
    pub(crate) fn new(
        parameters: &Parameters,
        digester: &Digester,
        accumulator: Accumulator,
    ) -> Self {
        let zero_runs = match parameters.construction().skips_zero_runs() {
            true => ZeroRuns::Skips,
            false => ZeroRuns::Hashes,
        };
        Self { leaf: parameters.leaf(digester), zero_runs, accumulator }
    }
}

impl Checksum for Folded {
    fn lane(&mut self, _window: usize) -> Needed<'_> {
        let hasher = BlockHasher { leaf: &self.leaf, zero_runs: self.zero_runs };
        Needed::Blocks(hasher, Box::new(&mut self.accumulator))
    }

    fn length(&self) -> u64 {
        self.accumulator.length()
    }

    fn finalize(self: Box<Self>) -> Digest {
        self.accumulator.finalize()
    }
}

/// Maximum number of zero blocks in a chunk if the digest of each is hashed, which takes a tenth of a second.
/// Progress advances, and a pass can be cancelled, at the ends of chunks.
const ZERO_BLOCKS_AT_ONCE: u64 = 1 << 24;

/// Maximum number of zero blocks that nothing stores, which is 256 TiB in blocks of 64 KiB. That is twice the size of
/// the largest file systems of guests. sha256 takes half a minute for them on two processors.
/// Limit in blocks.
const MAX_ZERO_BLOCKS: u64 = 1 << 32;
