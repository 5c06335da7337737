//! CRCs of segments, which can be added up.

use super::{JoinMethod, Method};
use crate::algo::Hash;
use crate::algo::crc::{Crc, Shift};
use crate::block::{BlockDigests, Run};
use crate::{Algorithm, Digest};

#[derive(Debug)]
pub(super) struct CrcSegments {
    /// An empty CRC.
    start: Crc,
    digest_size: usize,
}

impl CrcSegments {
    /// Returns the method for a CRC, or `None` for another algorithm.
    pub(super) fn new(algorithm: Algorithm) -> Option<Self> {
        Some(Self { start: Crc::of(algorithm)?, digest_size: algorithm.digest_size() })
    }
}

impl Method for CrcSegments {
    fn hash(&self, _: u64, segment: &[u8]) -> Digest {
        let mut crc = self.start.clone();
        crc.update(segment);
        finalize(crc, self.digest_size)
    }

    fn zeros(&self, _: u64, count: u64, size: usize, hashes: &mut BlockDigests) {
        hashes.push_zero_blocks(count, size);
    }

    fn max_zero_run(&self) -> u64 {
        u64::MAX
    }

    fn join(&self, size: u64) -> Box<dyn JoinMethod> {
        Box::new(Sum {
            crc: self.start.clone(),
            digest_size: self.digest_size,
            segment_size: size,
            segment: self.start.shift(size),
        })
    }
}

/// The CRC of the segments so far.
#[derive(Debug)]
struct Sum {
    crc: Crc,
    digest_size: usize,
    segment_size: u64,
    /// The factor that a whole segment multiplies the CRC of the bytes before it by.
    segment: Shift,
}

impl JoinMethod for Sum {
    fn take(&mut self, segments: &BlockDigests) {
        let last = segments.length() % self.segment_size;
        let whole = segments.length() / self.segment_size;
        let mut taken = 0;
        for run in segments.runs() {
            match run {
                Run::Zeros { count } => {
                    self.crc.update_zeros(count * self.segment_size);
                    taken += count;
                }
                Run::Digests { digests, .. } => {
                    for digest in digests.chunks_exact(self.digest_size) {
                        let shift = if taken < whole { self.segment } else { self.crc.shift(last) };
                        self.crc.append(digest, shift);
                        taken += 1;
                    }
                }
            }
        }
    }

    fn finalize(self: Box<Self>) -> Digest {
        finalize(self.crc, self.digest_size)
    }
}

fn finalize(crc: Crc, digest_size: usize) -> Digest {
    let mut digest = Digest::zeroed(digest_size);
    crc.finalize_into(digest.as_mut_bytes());
    digest
}
