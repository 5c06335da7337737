//! Lanes of a pass, each of which computes one checksum of the content.

use blkhash::engine::{
    Accumulator, Batch, BlockPieces, Join, Ordered, SegmentHasher, Segments, Stopped, Turn,
};
use blkhash::{BlockDigests, Leaf, Sink};

use crate::memory::Data;
use crate::plan::{Chunk, Piece, ZeroLimits};

/// A method of hashing and the receiver of its results in order.
pub(crate) enum Lane<'s> {
    /// Hashes blocks, many at a time.
    Blocks(BlockLane<'s>, Ordered<BlockDigests, DynSink<'s>>),
    /// Hashes the whole content, in segments that are independent of each other.
    Segments(&'s SegmentHasher, Ordered<Segments, &'s mut Join>),
    /// Hashes the whole content in order, one thread at a time.
    InTurn(Ordered<BlockDigests, &'s mut Accumulator>),
}

/// A receiver of the digests of blocks.
pub(crate) type DynSink<'s> = Box<dyn Sink<BlockDigests> + Send + 's>;

/// What a lane of blocks needs to know.
#[derive(Clone, Copy)]
pub(crate) struct BlockLane<'s> {
    pub(crate) leaf: &'s Leaf,
    pub(crate) zero_runs: ZeroRuns,
}

/// What the sink of a lane of blocks does with runs of zeros.
#[derive(Clone, Copy)]
pub(crate) enum ZeroRuns {
    /// Takes about the same time, however long they are.
    Skips,
    /// Hashes the digest of each block.
    Hashes,
    Unknown,
}

impl ZeroRuns {
    /// Returns what two sinks do together.
    pub(crate) fn beside(self, other: Self) -> Self {
        match (self, other) {
            (Self::Hashes, _) | (_, Self::Hashes) => Self::Hashes,
            (Self::Skips, Self::Skips) => Self::Skips,
            _ => Self::Unknown,
        }
    }
}

/// Result of a lane for a chunk.
pub(crate) enum Hashed {
    Blocks(BlockDigests),
    Segments(Segments),
    /// Nothing, because the lane hashes in turn.
    InTurn,
}

impl<'s> Lane<'s> {
    /// Returns the unit in bytes, a power of two. The content may be cut at its multiples.
    pub(crate) fn unit(&self) -> u64 {
        match self {
            Self::Blocks(blocks, _) => blocks.leaf.block_size() as u64,
            Self::Segments(hasher, _) => hasher.segment_size() as u64,
            // May be cut anywhere.
            Self::InTurn(_) => 1,
        }
    }

    /// Returns the limits on zeros for this lane. A pass uses the lowest limits of its lanes.
    pub(crate) fn zero_limits(&self) -> ZeroLimits {
        let unit = self.unit();
        let piece = match self {
            Self::Segments(hasher, _) => hasher.max_zero_run().saturating_mul(unit),
            Self::Blocks(BlockLane { zero_runs: ZeroRuns::Hashes, .. }, _) => {
                ZERO_BLOCKS_AT_ONCE * unit
            }
            Self::Blocks(..) => u64::MAX,
            Self::InTurn(_) => ZEROS_AT_ONCE,
        };
        let total = match self {
            Self::Blocks(BlockLane { zero_runs: ZeroRuns::Skips, .. }, _) => u64::MAX,
            Self::Blocks(..) => MAX_ZERO_BLOCKS.saturating_mul(unit),
            // A CRC of zeros costs nothing.
            Self::Segments(..) if piece == u64::MAX => u64::MAX,
            Self::Segments(..) | Self::InTurn(_) => MAX_LINEAR_ZEROS,
        };
        ZeroLimits { piece, alone: LONG_RUN * unit, total }
    }

    /// Returns whether a thread waits for its turn before it hashes.
    pub(crate) fn is_in_turn(&self) -> bool {
        matches!(self, Self::InTurn(_))
    }

    /// Returns an empty result for a chunk.
    pub(crate) fn empty(&self) -> Hashed {
        match self {
            Self::Blocks(_, ordered) => Hashed::Blocks(ordered.empty()),
            Self::Segments(_, ordered) => Hashed::Segments(ordered.empty()),
            Self::InTurn(_) => Hashed::InTurn,
        }
    }

    /// Hashes the pieces of a chunk, as far as possible before its turn.
    pub(crate) fn hash(&self, chunk: &Chunk, mut data: Data<'_>, hashed: &mut Hashed) {
        match (self, hashed) {
            (Self::Blocks(BlockLane { leaf, .. }, _), Hashed::Blocks(digests)) => {
                let mut batch = Batch::new(leaf, digests);
                for piece in &chunk.pieces {
                    match *piece {
                        Piece::Zeros { length, .. } => {
                            batch.zero_blocks(length / leaf.block_size() as u64);
                        }
                        Piece::Data { length, .. } => data.next(length, |part| batch.update(part)),
                    }
                }
                batch.finish();
            }
            (Self::Segments(hasher, _), Hashed::Segments(segments)) => {
                for piece in &chunk.pieces {
                    match *piece {
                        Piece::Zeros { offset, length } => {
                            let count = length / hasher.segment_size() as u64;
                            hasher.zero_segments(offset, count, segments);
                        }
                        Piece::Data { length, .. } => data.next(length, |part| {
                            hasher.update(chunk.offset + segments.length(), part, segments);
                        }),
                    }
                }
            }
            _ => {}
        }
    }

    /// Hands in the result for a chunk, or computes it in the chunk's turn.
    pub(crate) fn hand_in(
        &self,
        chunk: &Chunk,
        hashed: Hashed,
        mut data: Data<'_>,
    ) -> Result<(), Stopped> {
        match (self, hashed) {
            (Self::Blocks(_, ordered), Hashed::Blocks(digests)) => {
                ordered.hand_in(chunk.number, digests)
            }
            (Self::Segments(_, ordered), Hashed::Segments(segments)) => {
                ordered.hand_in(chunk.number, segments)
            }
            (Self::InTurn(ordered), _) => {
                let mut accumulator = ordered.turn(chunk.number)?;
                for piece in &chunk.pieces {
                    match *piece {
                        Piece::Zeros { length, .. } => accumulator.zero(length),
                        Piece::Data { length, .. } => {
                            data.next(length, |part| accumulator.update(part));
                        }
                    }
                }
                accumulator.end()
            }
            (Self::Blocks(..) | Self::Segments(..), _) => panic!("hashed by another lane"),
        }
    }

    /// Begins a chunk that is longer than the buffer and comes part by part. An in-turn lane waits
    /// for its turn.
    pub(crate) fn parts(
        &self,
        chunk: &Chunk,
        buffer_size: usize,
    ) -> Result<Parts<'_, 's>, Stopped> {
        Ok(match self {
            Self::Blocks(BlockLane { leaf, .. }, ordered) => Parts::Blocks {
                leaf,
                block: (leaf.block_size() > buffer_size)
                    .then(|| Box::new(BlockPieces::new((*leaf).clone()))),
                digests: ordered.empty(),
            },
            Self::Segments(hasher, ordered) => {
                Parts::Segments { hasher, offset: chunk.offset, segments: ordered.empty() }
            }
            Self::InTurn(ordered) => Parts::InTurn(ordered.turn(chunk.number)?),
        })
    }

    /// Hands in a chunk that came part by part.
    pub(crate) fn hand_in_parts(&self, chunk: &Chunk, parts: Parts<'_, 's>) -> Result<(), Stopped> {
        match (self, parts) {
            (Self::Blocks(_, ordered), Parts::Blocks { digests, .. }) => {
                ordered.hand_in(chunk.number, digests)
            }
            (Self::Segments(_, ordered), Parts::Segments { segments, .. }) => {
                ordered.hand_in(chunk.number, segments)
            }
            (_, Parts::InTurn(turn)) => turn.end(),
            (_, _) => panic!("hashed by another lane"),
        }
    }

    /// Abandons the run. Waiting threads return [`Stopped::Abandoned`].
    pub(crate) fn abandon(&self) {
        match self {
            Self::Blocks(_, ordered) => ordered.abandon(),
            Self::Segments(_, ordered) => ordered.abandon(),
            Self::InTurn(ordered) => ordered.abandon(),
        }
    }

    /// Releases the receiver of the results. Returns whether everything was handed in.
    pub(crate) fn finish(self) -> bool {
        match self {
            Self::Blocks(_, ordered) => ordered.finish().is_ok(),
            Self::Segments(_, ordered) => ordered.finish().is_ok(),
            Self::InTurn(ordered) => ordered.finish().is_ok(),
        }
    }
}

/// A chunk that comes part by part. The length of each part but the last is a power of two, and no
/// block or segment shorter than a part crosses its ends.
pub(crate) enum Parts<'a, 's> {
    Blocks {
        leaf: &'a Leaf,
        /// Block in progress, if blocks are longer than a part.
        block: Option<Box<BlockPieces>>,
        digests: BlockDigests,
    },
    Segments {
        hasher: &'a SegmentHasher,
        offset: u64,
        segments: Segments,
    },
    InTurn(Turn<'a, BlockDigests, &'s mut Accumulator>),
}

impl Parts<'_, '_> {
    /// Takes the next bytes of a piece of data. `is_last` is set for the end of the piece.
    pub(crate) fn update(&mut self, part: &[u8], is_last: bool) {
        match self {
            Self::Blocks { leaf, block: None, digests } => {
                let mut batch = Batch::new(leaf, digests);
                batch.update(part);
                batch.finish();
            }
            Self::Blocks { leaf, block: Some(block), digests } => {
                block.update(part);
                let (length, block_size) = (block.length(), leaf.block_size());
                if length == block_size as u64 && block.is_zero() {
                    block.skip();
                    digests.push_zero_blocks(1, block_size);
                } else if length == block_size as u64 || is_last {
                    digests.push(&block.finish(), length);
                }
            }
            Self::Segments { hasher, offset, segments } => {
                hasher.update(*offset + segments.length(), part, segments);
            }
            Self::InTurn(accumulator) => accumulator.update(part),
        }
    }

    /// Takes a piece of zeros.
    pub(crate) fn zero(&mut self, length: u64) {
        match self {
            Self::Blocks { leaf, digests, .. } => {
                let block_size = leaf.block_size();
                digests.push_zero_blocks(length / block_size as u64, block_size);
            }
            Self::Segments { hasher, offset, segments } => {
                let count = length / hasher.segment_size() as u64;
                hasher.zero_segments(*offset + segments.length(), count, segments);
            }
            Self::InTurn(accumulator) => accumulator.zero(length),
        }
    }
}

/// Number of consecutive zero blocks that make a chunk of their own.
const LONG_RUN: u64 = 1 << 15;

/// Maximum number of zero blocks in a chunk if the digest of each is hashed, which takes a tenth of a second.
/// Progress advances, and a pass can be cancelled, at the ends of chunks.
const ZERO_BLOCKS_AT_ONCE: u64 = 1 << 24;

/// Maximum number of zero bytes in a chunk if each byte is hashed, for the same reason.
const ZEROS_AT_ONCE: u64 = 64 << 20;

/// Maximum number of zero blocks, which is 256 TiB in blocks of 64 KiB. That is twice the size of
/// the largest file systems of guests. sha256 takes half a minute for them on two processors.
const MAX_ZERO_BLOCKS: u64 = 1 << 32;

/// Maximum number of zero bytes if each byte is hashed. sha256 takes an hour for them.
const MAX_LINEAR_ZEROS: u64 = 4 << 40;
