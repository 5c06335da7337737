//! What is made of the content of a chunk, once it is read.

use blkhash::{
    Accumulator, BlockDigests, BlockHasher, Construction, Digester, Parameters, SegmentHasher,
};

use crate::memory::Data;
use crate::plan::{Chunk, Piece};

/// How the content of an image is hashed.
pub(crate) enum Method {
    /// In blocks, many at a time.
    Blocks { hasher: Box<BlockHasher>, block_size: u64 },
    /// As a whole, from segments that do not wait for each other.
    Segments { hasher: SegmentHasher, segment_size: u64 },
    /// As a whole, one thread after the other.
    InTurn,
}

impl Method {
    /// The best for a content of `size` bytes. A segment is what is read at a time, a power of two.
    pub(crate) fn new(
        parameters: &Parameters,
        digester: &Digester,
        segment_size: u64,
        size: u64,
    ) -> Self {
        if parameters.construction() != Construction::Linear {
            let hasher = BlockHasher::with_digester(parameters, digester).into();
            return Self::Blocks { hasher, block_size: parameters.block_size() as u64 };
        }
        match SegmentHasher::new(parameters, segment_size as usize) {
            Some(hasher) if size > segment_size => Self::Segments { hasher, segment_size },
            _ => Self::InTurn,
        }
    }

    /// Chunks are cut at multiples of this.
    pub(crate) fn block_size(&self) -> u64 {
        match *self {
            Self::Blocks { block_size, .. } => block_size,
            Self::Segments { segment_size, .. } => segment_size,
            // Without blocks, anywhere.
            Self::InTurn => 1,
        }
    }

    /// The most blocks of zeros in a chunk.
    pub(crate) fn max_zero_run(&self) -> u64 {
        match self {
            Self::Blocks { .. } | Self::InTurn => u64::MAX,
            Self::Segments { hasher, .. } => hasher.max_zero_run(),
        }
    }

    /// The most zero blocks that are hashed by default, the image's files storing nothing of them.
    pub(crate) fn default_max_zero_blocks(&self) -> u64 {
        match self {
            Self::Blocks { .. } => MAX_ZERO_BLOCKS,
            // Those of CRCs cost nothing.
            Self::Segments { hasher, .. } if hasher.max_zero_run() == u64::MAX => u64::MAX,
            Self::Segments { segment_size, .. } => MAX_LINEAR_ZEROS / segment_size,
            Self::InTurn => MAX_LINEAR_ZEROS,
        }
    }

    /// What makes the checksum of what is hashed.
    pub(crate) fn accumulator(
        &self,
        parameters: &Parameters,
        digester: &Digester,
        threads: usize,
    ) -> Accumulator {
        match self {
            Self::Blocks { .. } | Self::InTurn => {
                Accumulator::with_digester(parameters, digester, threads)
            }
            Self::Segments { hasher, .. } => hasher.accumulator(),
        }
    }

    /// Hashes the pieces of a chunk. Nothing is hashed before its turn where that is the method.
    pub(crate) fn hash(&self, chunk: &Chunk, mut data: Data<'_>, digests: &mut BlockDigests) {
        match self {
            Self::Blocks { hasher, .. } => {
                let mut batch = hasher.batch(digests);
                for piece in &chunk.pieces {
                    match *piece {
                        Piece::ZeroBlocks(count) => batch.zero_blocks(count),
                        Piece::Data { length, .. } => data.next(length, |part| batch.content(part)),
                    }
                }
                batch.finish();
            }
            Self::Segments { hasher, .. } => {
                for piece in &chunk.pieces {
                    match *piece {
                        Piece::ZeroBlocks(count) => {
                            let offset = chunk.offset + digests.length();
                            hasher.zero_segments(offset, count, digests);
                        }
                        Piece::Data { length, .. } => data.next(length, |part| {
                            hasher.content(chunk.offset + digests.length(), part, digests);
                        }),
                    }
                }
            }
            Self::InTurn => {}
        }
    }
}

/// Takes a chunk as plain content, in blocks of one byte.
pub(crate) fn accumulate(chunk: &Chunk, mut data: Data<'_>, accumulator: &mut Accumulator) {
    for piece in &chunk.pieces {
        match *piece {
            Piece::ZeroBlocks(count) => accumulator.zeros(count),
            Piece::Data { length, .. } => data.next(length, |part| accumulator.data(part)),
        }
    }
}

/// 256 TiB in blocks of 64 KiB: twice as much as the largest file systems of guests, and with sha256
/// half a minute on two processors.
const MAX_ZERO_BLOCKS: u64 = 1 << 32;

/// Bytes of zeros where each is hashed: with sha256 an hour.
const MAX_LINEAR_ZEROS: u64 = 4 << 40;
