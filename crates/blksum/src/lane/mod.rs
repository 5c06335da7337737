//! Lanes of a pass, each of which hashes the content in its own way, and the checksums that they
//! compute. A file for each kind.

use blkhash::engine::{Shares, Stopped};
use blkhash::{BlockDigests, Digest, Leaf, Sink};

use crate::memory::Data;
use crate::plan::{Chunk, ZeroLimits};

pub(crate) mod blocks;
pub(crate) mod in_turn;
pub(crate) mod segments;

/// A method of hashing chunks in any order, and the receiver of its results in order.
pub(crate) trait Lane: Sync {
    /// Returns the unit in bytes, a power of two. The content may be cut at its multiples.
    fn unit(&self) -> u64;

    /// Returns the shares of threads in its blocks, if it hashes several at once.
    fn shares(&self, threads: usize) -> Option<Shares> {
        let _ = threads;
        None
    }

    /// Returns the limits on zeros for this lane. A pass uses the lowest limits of its lanes.
    fn zero_limits(&self) -> ZeroLimits;

    /// Returns whether a thread waits for its turn before it hashes.
    fn is_in_turn(&self) -> bool {
        false
    }

    /// Hashes the pieces of a chunk, as far as possible before its turn. A result that is dropped
    /// leaves no trace.
    fn hash<'a>(&'a self, chunk: &'a Chunk, data: Data<'_>) -> HandIn<'a>;

    /// Begins a chunk that is longer than the buffer and comes part by part. An in-turn lane waits
    /// for its turn.
    fn parts<'a>(
        &'a self,
        chunk: &Chunk,
        buffer_size: usize,
    ) -> Result<Box<dyn Parts + 'a>, Stopped>;

    /// Abandons the run. Waiting threads return [`Stopped::Abandoned`].
    fn abandon(&self);

    /// Releases the receiver of the results. Returns whether everything was handed in.
    fn finish(self: Box<Self>) -> bool;
}

/// Hands in the result for a chunk, or computes it from the data in the chunk's turn.
pub(crate) type HandIn<'a> = Box<dyn FnOnce(Data<'_>) -> Result<(), Stopped> + 'a>;

/// A chunk that comes part by part. The length of each part but the last is a power of two, and no
/// block or segment shorter than a part crosses its ends.
pub(crate) trait Parts {
    /// Takes the next bytes of a piece of data. `is_last` is set for the end of the piece.
    fn update(&mut self, part: &[u8], is_last: bool);

    /// Takes a piece of zeros.
    fn zero(&mut self, length: u64);

    /// Hands in the chunk, which is complete.
    fn hand_in(self: Box<Self>) -> Result<(), Stopped>;
}

/// One of the checksums of a pass, which a lane computes.
pub(crate) trait Checksum {
    /// Returns the lane. At most `window` chunks wait in it for the next one in order.
    fn lane(&mut self, window: usize) -> Needed<'_>;

    /// Returns the length of the content that was hashed.
    fn length(&self) -> u64;

    fn finalize(self: Box<Self>) -> Digest;
}

/// The lane that computes a checksum.
pub(crate) enum Needed<'s> {
    /// One of blocks, which the receiver may share with others.
    Blocks(BlockHasher<'s>, DynSink<'s>),
    /// Its own one.
    Own(Box<dyn Lane + 's>),
}

/// Defines the blocks of a lane.
#[derive(Clone, Copy)]
pub(crate) struct BlockHasher<'s> {
    pub(crate) leaf: &'s Leaf,
    pub(crate) zero_runs: ZeroRuns,
}

/// A receiver of the digests of blocks.
pub(crate) type DynSink<'s> = Box<dyn Sink<BlockDigests> + Send + 's>;

/// The treatment of runs of zeros by the sink of a lane of blocks.
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

/// Number of consecutive zero blocks that make a chunk of their own.
const LONG_RUN: u64 = 1 << 15;

/// Maximum number of zero bytes that nothing stores if each byte is hashed. sha256 takes an hour
/// for them.
/// Limit in bytes.
pub(crate) const MAX_LINEAR_ZEROS: u64 = 4 << 40;
