//! Hashes segments that are independent of each other, for algorithms that can join their hashes.

use blkhash::Digest;
use blkhash::engine::{Join, Ordered, SegmentHasher, Segments, Stopped};

use super::{Checksum, HandIn, LONG_RUN, Lane, MAX_LINEAR_ZEROS, Needed, Parts};
use crate::memory::Data;
use crate::plan::{Chunk, Piece, ZeroLimits};

struct SegmentLane<'s> {
    hasher: &'s SegmentHasher,
    ordered: Ordered<Segments, &'s mut Join>,
}

impl Lane for SegmentLane<'_> {
    fn unit(&self) -> u64 {
        self.hasher.segment_size() as u64
    }

    fn zero_limits(&self) -> ZeroLimits {
        let unit = self.unit();
        let piece = self.hasher.max_zero_run().saturating_mul(unit);
        // A CRC of zeros costs nothing.
        let total = if piece == u64::MAX { u64::MAX } else { MAX_LINEAR_ZEROS };
        ZeroLimits { piece, alone: LONG_RUN * unit, total }
    }

    fn hash<'a>(&'a self, chunk: &'a Chunk, mut data: Data<'_>) -> HandIn<'a> {
        let mut segments = self.ordered.empty();
        for piece in &chunk.pieces {
            match *piece {
                Piece::Zeros { offset, length } => {
                    let count = length / self.unit();
                    self.hasher.zero_segments(offset, count, &mut segments);
                }
                Piece::Data { length, .. } => data.next(length, |part| {
                    self.hasher.update(chunk.offset + segments.length(), part, &mut segments);
                }),
            }
        }
        Box::new(|_| self.ordered.hand_in(chunk.number, segments))
    }

    fn parts<'a>(
        &'a self,
        chunk: &Chunk,
        _buffer_size: usize,
    ) -> Result<Box<dyn Parts + 'a>, Stopped> {
        Ok(Box::new(SegmentParts {
            lane: self,
            number: chunk.number,
            offset: chunk.offset,
            segments: self.ordered.empty(),
        }))
    }

    fn abandon(&self) {
        self.ordered.abandon();
    }

    fn finish(self: Box<Self>) -> bool {
        self.ordered.finish().is_ok()
    }
}

struct SegmentParts<'a, 's> {
    lane: &'a SegmentLane<'s>,
    number: u64,
    offset: u64,
    segments: Segments,
}

impl Parts for SegmentParts<'_, '_> {
    fn update(&mut self, part: &[u8], _is_last: bool) {
        let offset = self.offset + self.segments.length();
        self.lane.hasher.update(offset, part, &mut self.segments);
    }

    fn zero(&mut self, length: u64) {
        let (offset, count) = (self.offset + self.segments.length(), length / self.lane.unit());
        self.lane.hasher.zero_segments(offset, count, &mut self.segments);
    }

    fn hand_in(self: Box<Self>) -> Result<(), Stopped> {
        self.lane.ordered.hand_in(self.number, self.segments)
    }
}

/// A checksum that is joined from the hashes of segments.
pub(crate) struct Joined {
    hasher: SegmentHasher,
    join: Join,
}

impl Joined {
    pub(crate) fn new(hasher: SegmentHasher) -> Self {
        Self { join: hasher.join(), hasher }
    }
}

impl Checksum for Joined {
    fn lane(&mut self, window: usize) -> Needed<'_> {
        let ordered = Ordered::new(&mut self.join, window);
        Needed::Own(Box::new(SegmentLane { hasher: &self.hasher, ordered }))
    }

    fn length(&self) -> u64 {
        self.join.length()
    }

    fn finalize(self: Box<Self>) -> Digest {
        self.join.finalize()
    }
}
