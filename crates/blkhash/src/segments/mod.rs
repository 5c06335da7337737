//! Makes the hash of a whole content from hashes of its segments, for algorithms that allow it.
//!
//! [`Construction::Linear`] has no blocks. But a CRC is linear, so the CRC of two parts is a sum.
//! And BLAKE3 is a tree, whose subtrees only depend on their offset and content. Segments are
//! hashed on any thread.

mod blake3;
mod crc;

use std::fmt::Debug;

use crate::block::BlockDigests;
use crate::{Algorithm, BlockSize, Construction, Digest, Parameters, Sink, SinkError};

/// Hashes segments of a content, which have the same size except the last.
#[derive(Debug)]
pub struct SegmentHasher {
    method: Box<dyn Method>,
    segment_size: usize,
}

/// The hashes of consecutive segments.
#[derive(Clone, Debug, Default)]
pub struct Segments(BlockDigests);

/// Joins the hashes of segments to the hash of the content.
#[derive(Debug)]
pub struct Join {
    method: Box<dyn JoinMethod>,
    length: u64,
}

/// Hashing of segments by an algorithm.
trait Method: Debug + Send + Sync {
    /// Returns the hash of the segment at `offset`.
    fn hash(&self, offset: u64, segment: &[u8]) -> Digest;

    /// Appends `count` segments of `size` zeros each. The first one is at `offset`.
    fn zeros(&self, offset: u64, count: u64, size: usize, hashes: &mut BlockDigests);

    /// Returns the most zero segments that one thread should take at once, to leave work for
    /// others.
    fn max_zero_run(&self) -> u64;

    /// Returns the method that joins segments of `size` bytes.
    fn join(&self, size: u64) -> Box<dyn JoinMethod>;
}

/// Joining of the hashes of segments by an algorithm.
trait JoinMethod: Debug + Send {
    /// Appends segments. Only the last one of the content may be short.
    fn take(&mut self, segments: &BlockDigests);

    /// Returns the hash of all segments, of which there are at least two.
    fn finalize(self: Box<Self>) -> Digest;
}

impl SegmentHasher {
    /// Creates a hasher for a content longer than one segment of `segment_size` bytes. Returns
    /// `None` if the construction is not [`Construction::Linear`] or the algorithm does not allow
    /// segments.
    ///
    /// # Panics
    ///
    /// Panics if the size is not a power of two, or is below 1024.
    pub fn new(parameters: &Parameters, segment_size: usize) -> Option<Self> {
        assert!(segment_size.is_power_of_two() && segment_size >= MIN_SEGMENT_SIZE);
        if parameters.construction() != Construction::Linear {
            return None;
        }
        let method: Box<dyn Method> = match parameters.algorithm() {
            Algorithm::Blake3 => Box::new(blake3::Subtrees),
            algorithm => Box::new(crc::CrcSegments::new(algorithm)?),
        };
        Some(Self { method, segment_size })
    }

    /// Returns the size of a segment in bytes.
    pub fn segment_size(&self) -> usize {
        self.segment_size
    }

    /// Returns the sink that joins the hashes of the segments.
    pub fn join(&self) -> Join {
        Join { method: self.method.join(self.segment_size as u64), length: 0 }
    }

    /// Returns the most zero segments that one thread should take at once, to leave work for
    /// others.
    pub fn max_zero_run(&self) -> u64 {
        self.method.max_zero_run()
    }

    /// Appends the segments of `content`, which begins at `offset`, a multiple of the segment size.
    /// The last one may be short.
    pub fn update(&self, mut offset: u64, content: &[u8], segments: &mut Segments) {
        for segment in content.chunks(self.segment_size) {
            let length = segment.len() as u64;
            segments.0.push(&self.method.hash(offset, segment), length);
            offset += length;
        }
    }

    /// Appends `count` whole zero segments. The first one begins at `offset`.
    pub fn zero_segments(&self, offset: u64, count: u64, segments: &mut Segments) {
        self.method.zeros(offset, count, self.segment_size, &mut segments.0);
    }
}

impl Segments {
    /// Returns the number of bytes that the segments cover.
    pub fn length(&self) -> u64 {
        self.0.length()
    }

    /// Removes all segments and keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Join {
    /// Creates the sink that joins the CRCs of blocks, which are segments. Returns `None` if the algorithm is not a CRC.
    pub fn of_blocks(algorithm: Algorithm, block_size: BlockSize) -> Option<Self> {
        let method = crc::CrcSegments::new(algorithm)?.join(block_size.into());
        Some(Self { method, length: 0 })
    }

    /// Returns the length of the content so far, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the hash of all segments. Unless they belong to a CRC, there are at least two.
    pub fn finalize(self) -> Digest {
        self.method.finalize()
    }
}

impl Sink<BlockDigests> for Join {
    /// Appends blocks. Only the last one of the content may be short.
    fn take(&mut self, blocks: &BlockDigests) -> Result<(), SinkError> {
        self.method.take(blocks);
        self.length += blocks.length();
        Ok(())
    }
}

impl Sink<Segments> for Join {
    /// Appends segments. Only the last one of the content may be short.
    fn take(&mut self, segments: &Segments) -> Result<(), SinkError> {
        self.take(&segments.0)
    }
}

/// The length of a BLAKE3 chunk, the smallest subtree.
const MIN_SEGMENT_SIZE: usize = 1024;
