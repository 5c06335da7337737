//! Cuts two contents into chunks: what is known to be equal, and what has to be read.

use std::ops::Range;

use blkimage::{Origin, OriginKind, Source};

use super::on_volume::{Effort, OnVolume};
use crate::Error;
use crate::look_ahead::{Planned, Planner};
use crate::plan::usable;

/// Hands out the common content of two sources from start to end, in chunks of whole blocks. Queries
/// origins as the plan advances, and never collects them.
pub(super) struct Plan<'a> {
    left: Side<'a>,
    right: Side<'a>,
    /// `None` if no volume has files of both.
    on_volume: Option<OnVolume<'a>>,
    size: u64,
    block_size: u64,
    chunk_size: u64,
    /// Chunks end at multiples of this where possible.
    granularity: u64,
    position: u64,
    next_number: u64,
}

/// Whole blocks, except at the end of the content.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// Index of the chunk in the plan.
    number: u64,
    /// Offset of the first segment.
    pub offset: u64,
    /// Contiguous segments, cut anywhere.
    pub segments: Vec<Segment>,
    /// Bytes in all segments.
    pub length: u64,
    /// Bytes in segments to read.
    pub data_length: u64,
}

/// A run of bytes that are compared in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub offset: u64,
    pub length: u64,
    pub kind: SegmentKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentKind {
    /// Zeros on both sides.
    Zeros,
    /// Bytes that both sides get from one place.
    Shared,
    /// Bytes to read from these sides. The other side, if any, is zero.
    Read(Sides),
}

/// One side or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sides {
    pub left: bool,
    pub right: bool,
}

impl Sides {
    const BOTH: Self = Self { left: true, right: true };
}

impl<'a> Plan<'a> {
    /// Creates a plan of chunks with about `chunk_size` bytes to read, but at least one block and one
    /// unit of the granularity. `block_size` and `chunk_size` are powers of two.
    pub fn new(
        left: &'a dyn Source,
        right: &'a dyn Source,
        block_size: u64,
        chunk_size: u64,
    ) -> Self {
        let [one, other] = [left, right].map(|it| usable(it.granularity(), chunk_size));
        let granularity = block_size.max(one).max(other);
        Self {
            left: Side { source: left, known: None },
            right: Side { source: right, known: None },
            on_volume: OnVolume::new(left, right, Effort::Fast),
            size: left.size().min(right.size()),
            block_size,
            chunk_size: chunk_size.max(granularity),
            granularity,
            position: 0,
            next_number: 0,
        }
    }

    /// Returns the number of bytes to read in a chunk, which a last segment may exceed.
    pub fn chunk_size(&self) -> u64 {
        self.chunk_size
    }

    /// Returns the plan with queries about all fragments, for a caller that reads nothing.
    pub fn complete(self) -> Self {
        let (left, right) = (self.left.source, self.right.source);
        Self { on_volume: OnVolume::new(left, right, Effort::Complete), ..self }
    }

    /// Returns whether a volume has files of both sources, so that these may share extents.
    pub fn has_volume(&self) -> bool {
        self.on_volume.is_some()
    }

    /// Returns the segment at the position, which need not be maximal.
    fn segment(&mut self) -> Result<Segment, Error> {
        let (offset, limit) = (self.position, self.size - self.position);
        let left = self.left.origin(offset, limit)?;
        let right = self.right.origin(offset, limit)?;
        let mut length = left.length.min(right.length);
        let kind = match (left.kind, right.kind) {
            (OriginKind::Zero, OriginKind::Zero) => SegmentKind::Zeros,
            (OriginKind::Stored(one), OriginKind::Stored(other)) if one == other => {
                SegmentKind::Shared
            }
            (OriginKind::Stored(one), OriginKind::Stored(other))
                if one.is_in_other_file(&other) =>
            {
                let is_shared;
                (is_shared, length) = match &mut self.on_volume {
                    Some(on_volume) => on_volume.is_shared(offset, length)?,
                    None => (false, length),
                };
                if is_shared { SegmentKind::Shared } else { SegmentKind::Read(Sides::BOTH) }
            }
            (left, right) => SegmentKind::Read(Sides {
                left: left != OriginKind::Zero,
                right: right != OriginKind::Zero,
            }),
        };
        Ok(Segment { offset, length, kind })
    }

    fn block_end(&self) -> u64 {
        (self.position - self.position % self.block_size).saturating_add(self.block_size)
    }

    /// Returns the end of the data that may be appended at the position, or `None` if the chunk is full.
    fn data_end(&self, chunk: &Chunk) -> Option<u64> {
        let room = self.chunk_size.saturating_sub(chunk.data_length);
        let end = self.position.saturating_add(room) / self.granularity * self.granularity;
        if end > self.position {
            return Some(end);
        }
        let is_between_blocks = self.position.is_multiple_of(self.block_size);
        (!is_between_blocks || chunk.length == 0).then(|| self.block_end())
    }
}

impl Planner for Plan<'_> {
    type Chunk = Chunk;

    fn next(&mut self, chunk: &mut Chunk) -> Result<bool, Error> {
        chunk.clear();
        chunk.number = self.next_number;
        chunk.offset = self.position;
        self.next_number += 1;
        let mut steps = 0;
        while self.position < self.size {
            let is_full = steps >= MAX_STEPS || chunk.data_length >= self.chunk_size;
            if is_full && self.position.is_multiple_of(self.block_size) {
                break;
            }
            let segment = if steps < MAX_BLOCK_STEPS {
                self.segment()?
            } else {
                // Too fragmented to be worth the memory, so the rest of the block is read.
                let kind = SegmentKind::Read(Sides::BOTH);
                Segment { offset: self.position, length: u64::MAX, kind }
            };
            steps += 1;
            let end = match segment.kind {
                _ if is_full => self.block_end(),
                SegmentKind::Zeros | SegmentKind::Shared => self.size,
                SegmentKind::Read(_) => match self.data_end(chunk) {
                    Some(end) => end,
                    None => break,
                },
            };
            let length = segment.length.min(end.min(self.size) - self.position);
            chunk.push(Segment { length, ..segment });
            self.position += length;
        }
        Ok(chunk.length > 0)
    }

    fn is_over(&self) -> bool {
        self.position >= self.size
    }

    fn read_ahead(&self) -> u64 {
        self.left.source.read_ahead().max(self.right.source.read_ahead())
    }

    fn announce(&self, chunk: &Chunk) {
        for segment in &chunk.segments {
            let SegmentKind::Read(sides) = segment.kind else { continue };
            for (is_read, side) in [(sides.left, &self.left), (sides.right, &self.right)] {
                if is_read {
                    side.source.will_need(segment.offset, segment.length);
                }
            }
        }
    }
}

impl Chunk {
    /// Returns the parts of `range` that both sides get from one place.
    pub fn shared(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let first = self.segments.partition_point(|segment| segment.end() <= range.start);
        self.segments[first..]
            .iter()
            .take_while(move |segment| segment.offset < range.end)
            .filter(|segment| segment.kind == SegmentKind::Shared)
            .map(move |it| it.offset.max(range.start)..it.end().min(range.end))
    }

    fn clear(&mut self) {
        self.segments.clear();
        self.length = 0;
        self.data_length = 0;
    }

    fn push(&mut self, segment: Segment) {
        self.length += segment.length;
        if let SegmentKind::Read(_) = segment.kind {
            self.data_length += segment.length;
        }
        if !self.join(segment) {
            self.segments.push(segment);
        }
    }

    /// Extends the last segment by `segment` if both are of one kind, or are better read at once.
    /// Returns whether it did.
    fn join(&mut self, segment: Segment) -> bool {
        let Some((last, before)) = self.segments.split_last_mut() else { return false };
        if last.kind == segment.kind {
            last.length += segment.length;
            return true;
        }
        let SegmentKind::Read(sides) = segment.kind else { return false };
        let (first, gap) = match (last.kind, before.last_mut()) {
            (SegmentKind::Read(_), _) => (last, 0),
            (SegmentKind::Zeros, Some(before)) if last.length < MIN_GAP => (before, last.length),
            _ => return false,
        };
        let SegmentKind::Read(first_sides) = first.kind else { return false };
        if first.length + gap + segment.length > MAX_JOINED {
            return false;
        }
        first.length += gap + segment.length;
        first.kind = SegmentKind::Read(Sides {
            left: first_sides.left || sides.left,
            right: first_sides.right || sides.right,
        });
        if gap > 0 {
            self.segments.pop();
            self.data_length += gap;
        }
        true
    }
}

impl Planned for Chunk {
    fn number(&self) -> u64 {
        self.number
    }

    fn data_length(&self) -> u64 {
        self.data_length
    }
}

impl Segment {
    /// Returns the offsets of the bytes.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.end()
    }

    fn end(&self) -> u64 {
        self.offset + self.length
    }
}

/// A source, and its last origin.
struct Side<'a> {
    source: &'a dyn Source,
    known: Option<Origin>,
}

impl Side<'_> {
    /// Returns the part of an origin that starts at `offset`, which is at or after the offset of the last
    /// call.
    fn origin(&mut self, offset: u64, limit: u64) -> Result<Origin, Error> {
        if let Some(known) = self.known.filter(|known| offset < known.end()) {
            let distance = offset - known.offset;
            let length = (known.length - distance).min(limit);
            return Ok(Origin { offset, length, kind: known.kind.advanced(distance) });
        }
        let origin = self.source.origin(offset, limit)?;
        if origin.offset != offset || origin.length == 0 || origin.length > limit {
            return Err(Error::Extent { offset: origin.offset, length: origin.length, limit });
        }
        self.known = Some(origin);
        Ok(origin)
    }
}

/// Shorter gaps of zeros are read rather than skipped, because a page is read as a whole.
const MIN_GAP: u64 = 4 << 10;

/// Maximum length of reads that are joined although the sides differ. A read of this length costs
/// little more than a shorter one.
const MAX_JOINED: u64 = 64 << 10;

/// Maximum number of queries until a chunk of a comparison ends with its block, which limits its memory and its time.
/// Limit in queries.
const MAX_STEPS: u32 = 1 << 12;

/// Maximum number of queries until the rest of a block is read as a whole. Clusters of 1 KiB stay below it in the
/// longest block.
/// Limit in queries.
const MAX_BLOCK_STEPS: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(left: bool, right: bool) -> SegmentKind {
        SegmentKind::Read(Sides { left, right })
    }

    fn joined(segments: &[(u64, SegmentKind)]) -> (Vec<(u64, SegmentKind)>, u64) {
        let mut chunk = Chunk::default();
        for &(length, kind) in segments {
            chunk.push(Segment { offset: chunk.length, length, kind });
        }
        let segments = chunk.segments.iter().map(|segment| (segment.length, segment.kind));
        (segments.collect(), chunk.data_length)
    }

    #[test]
    fn short_reads_and_gaps_are_joined() {
        use SegmentKind::{Shared, Zeros};
        for (segments, expected, data) in [
            (vec![(9, Zeros), (8, Zeros)], vec![(17, Zeros)], 0),
            (
                vec![(512, read(true, false)), (512, read(false, true))],
                vec![(1024, read(true, true))],
                1024,
            ),
            (
                vec![(512, read(true, false)), (512, Zeros), (512, read(true, false))],
                vec![(1536, read(true, false))],
                1536,
            ),
        ] {
            assert_eq!(joined(&segments), (expected, data));
        }
        for (segments, data) in [
            (vec![(512, read(true, false)), (4096, Zeros), (512, read(true, false))], 1024),
            (vec![(512, read(true, false)), (512, Shared), (512, read(true, false))], 1024),
            (vec![(512, Shared), (512, Zeros), (512, read(true, false))], 512),
            (vec![(65_536, read(true, false)), (512, read(true, true))], 66_048),
        ] {
            assert_eq!(joined(&segments), (segments, data));
        }
    }

    #[test]
    fn shared_parts_of_a_range() {
        use SegmentKind::{Shared, Zeros};
        let mut chunk = Chunk::default();
        for (length, kind) in [(10, Shared), (10, Zeros), (10, Shared), (10, read(true, true))] {
            chunk.push(Segment { offset: chunk.length, length, kind });
        }
        let shared = |range| chunk.shared(range).collect::<Vec<_>>();
        assert_eq!(shared(0..40), [0..10, 20..30]);
        assert_eq!(shared(5..25), [5..10, 20..25]);
        assert_eq!(shared(10..20), []);
    }
}
