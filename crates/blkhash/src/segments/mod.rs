//! The hash of a whole content from hashes of its parts, for algorithms that allow it.
//!
//! [`Construction::Linear`] has no blocks, but a CRC is linear, so that of two parts is a sum, and
//! BLAKE3 is a tree, whose subtrees know where they stand. Segments are hashed on any thread.

mod blake3;
mod crc;

use std::fmt::Debug;

use crate::block::BlockDigests;
use crate::{Algorithm, Construction, Digest, Parameters, Sink, SinkError};

/// Hashes segments of a content, all of one size but the last.
#[derive(Debug)]
pub struct SegmentHasher {
    method: Box<dyn Method>,
    segment_size: usize,
}

/// The hashes of consecutive segments.
#[derive(Clone, Debug, Default)]
pub struct Segments(BlockDigests);

/// Joins the hashes of segments to that of the content.
#[derive(Debug)]
pub struct Join {
    method: Box<dyn JoinMethod>,
    length: u64,
}

/// How an algorithm hashes a segment.
trait Method: Debug + Send + Sync {
    /// The hash of the segment at `offset`.
    fn hash(&self, offset: u64, segment: &[u8]) -> Digest;

    /// Appends `count` segments of `size` zeros each, the first of which is at `offset`.
    fn zeros(&self, offset: u64, count: u64, size: usize, hashes: &mut BlockDigests);

    /// The most zero segments that one thread should take at once, so that others have work too.
    fn max_zero_run(&self) -> u64;

    /// What joins segments of `size` bytes.
    fn join(&self, size: u64) -> Box<dyn JoinMethod>;
}

/// How an algorithm joins the hashes of segments.
trait JoinMethod: Debug + Send {
    /// Takes the next segments. Only the last one of all may be short.
    fn take(&mut self, segments: &BlockDigests);

    /// The hash of everything taken, more than one segment.
    fn finalize(self: Box<Self>) -> Digest;
}

impl SegmentHasher {
    /// A hasher of segments of `segment_size` bytes for a content of more than that, if the
    /// construction is [`Construction::Linear`] and the algorithm allows it.
    ///
    /// # Panics
    ///
    /// If the size is not a power of two, or below 1024.
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

    /// Bytes of a segment.
    pub fn segment_size(&self) -> usize {
        self.segment_size
    }

    /// What makes the checksum of the segments' hashes.
    pub fn join(&self) -> Join {
        Join { method: self.method.join(self.segment_size as u64), length: 0 }
    }

    /// The most zero segments that one thread should take at once, so that others have work too.
    pub fn max_zero_run(&self) -> u64 {
        self.method.max_zero_run()
    }

    /// Appends the segments of `content`, which begins at `offset`, a multiple of their size. The
    /// last one may be short.
    pub fn update(&self, mut offset: u64, content: &[u8], segments: &mut Segments) {
        for segment in content.chunks(self.segment_size) {
            let length = segment.len() as u64;
            segments.0.push(&self.method.hash(offset, segment), length);
            offset += length;
        }
    }

    /// Appends `count` whole segments of zeros, the first of which begins at `offset`.
    pub fn zero_segments(&self, offset: u64, count: u64, segments: &mut Segments) {
        self.method.zeros(offset, count, self.segment_size, &mut segments.0);
    }
}

impl Segments {
    /// Bytes of content that the segments cover.
    pub fn length(&self) -> u64 {
        self.0.length()
    }

    /// Forgets all segments and keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Join {
    /// Bytes taken.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The hash of everything taken, more than one segment.
    pub fn finalize(self) -> Digest {
        self.method.finalize()
    }
}

impl Sink<Segments> for Join {
    /// Only the last segment of all may be short.
    fn take(&mut self, segments: &Segments) -> Result<(), SinkError> {
        self.method.take(&segments.0);
        self.length += segments.length();
        Ok(())
    }
}

/// A chunk of BLAKE3, its smallest subtree.
const MIN_SEGMENT_SIZE: usize = 1024;
