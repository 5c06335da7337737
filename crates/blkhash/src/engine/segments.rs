//! The hash of a whole content from hashes of its parts.

use super::BlockDigests;
use crate::algo::Hash;
use crate::algo::blake3::Blake3;
use crate::algo::crc::Crc;
use crate::construction::Join;
use crate::{Accumulator, Algorithm, Construction, Digest, Parameters};

/// Hashes segments of a content, on any thread, where the hash of the whole can be put together
/// from theirs.
///
/// The segments take the place of blocks: [`BlockDigests`] holds their hashes, and
/// [`accumulator`](Self::accumulator) joins them. A CRC is linear, so that of two parts is a sum.
/// BLAKE3 is a tree, whose subtrees know where they stand.
#[derive(Clone, Debug)]
pub struct SegmentHasher {
    algorithm: Algorithm,
    kind: Kind,
    segment_size: usize,
}

#[derive(Clone, Debug)]
enum Kind {
    Crc(Box<Crc>),
    Blake3,
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
        let algorithm = parameters.algorithm();
        let kind = match algorithm {
            Algorithm::Blake3 => Kind::Blake3,
            _ => Kind::Crc(Box::new(Crc::of(algorithm)?)),
        };
        Some(Self { algorithm, kind, segment_size })
    }

    /// What makes the checksum of the segments' hashes.
    pub fn accumulator(&self) -> Accumulator {
        let size = self.segment_size as u64;
        Accumulator::of_segments(match &self.kind {
            Kind::Crc(start) => Join::crc(self.algorithm, start, size),
            Kind::Blake3 => Join::blake3(size),
        })
    }

    /// The most zero segments that one thread should take at once, so that others have work too.
    pub fn max_zero_run(&self) -> u64 {
        match self.kind {
            Kind::Crc(_) => u64::MAX,
            Kind::Blake3 => 1,
        }
    }

    /// Appends the segments of `content`, which begins at `offset`, a multiple of their size. The
    /// last one may be short.
    pub fn content(&self, mut offset: u64, content: &[u8], digests: &mut BlockDigests) {
        for segment in content.chunks(self.segment_size) {
            digests.push(&self.hash(offset, segment), segment.len() as u64);
            offset += segment.len() as u64;
        }
    }

    /// Appends `count` whole segments of zeros, the first of which begins at `offset`.
    pub fn zero_segments(&self, mut offset: u64, count: u64, digests: &mut BlockDigests) {
        match self.kind {
            Kind::Crc(_) => digests.push_zero_blocks(count, self.segment_size),
            Kind::Blake3 => {
                for _ in 0..count {
                    let mut subtree = Blake3::subtree(offset);
                    subtree.update_zeros(self.segment_size as u64);
                    digests.push(&subtree.chaining_value(), self.segment_size as u64);
                    offset += self.segment_size as u64;
                }
            }
        }
    }

    fn hash(&self, offset: u64, segment: &[u8]) -> Digest {
        match &self.kind {
            Kind::Crc(start) => {
                let mut crc = Crc::clone(start);
                crc.update(segment);
                let mut digest = Digest::zeroed(self.algorithm.digest_size());
                crc.finalize_into(digest.as_mut_bytes());
                digest
            }
            Kind::Blake3 => {
                let mut subtree = Blake3::subtree(offset);
                subtree.update(segment);
                subtree.chaining_value()
            }
        }
    }
}

/// A chunk of BLAKE3, its smallest subtree.
const MIN_SEGMENT_SIZE: usize = 1024;
