//! Cuts the content of an image into chunks of data to read and known zeros.
//! docs/inside/decisions/zeros.md says why zeros are hashed.

use blkimage::{Extent, ExtentKind, Source};

use crate::Error;
use crate::look_ahead::{Planned, Planner};
use crate::tuning::MAX_BUFFER;

/// Hands out the content of an image from start to end, in chunks that one thread reads and hashes
/// at a time. Queries extents as the plan advances, and never collects them.
pub(crate) struct Plan<'a> {
    source: &'a dyn Source,
    size: u64,
    /// Pieces are cut at multiples of this, so that they contain whole blocks of any lane.
    unit: u64,
    chunk_size: u64,
    /// Pieces of data end at multiples of this where possible.
    granularity: u64,
    limits: ZeroLimits,
    /// Bytes of zeros that may still follow.
    zeros_left: u64,
    position: u64,
    next_number: u64,
    extents: Lookahead,
}

/// Limits on zeros, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZeroLimits {
    /// Maximum length of a piece of zeros.
    pub(crate) piece: u64,
    /// Minimum length of a run of zeros that is a chunk of its own, so that one thread works on it
    /// while others read.
    pub(crate) alone: u64,
    /// Maximum number of zeros in the content. More are an error.
    pub(crate) total: u64,
}

/// A part of the content. Its pieces are contiguous.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// Index of the chunk in the plan.
    pub(crate) number: u64,
    /// Offset of the first piece.
    pub(crate) offset: u64,
    pub(crate) pieces: Vec<Piece>,
    /// Extents to read for the pieces of data, in order. Gaps between them are zeros.
    pub(crate) reads: Vec<Extent>,
    /// Bytes in pieces of data.
    pub(crate) data_length: u64,
    /// Bytes in all pieces.
    pub(crate) length: u64,
}

/// A part of a chunk. Starts at a multiple of the plan's unit, and ends at one or at the end of the
/// content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Whole units of zeros.
    Zeros { offset: u64, length: u64 },
    /// Units that each contain data.
    Data { offset: u64, length: u64 },
}

impl<'a> Plan<'a> {
    /// Creates a plan that cuts at multiples of `unit` bytes. A chunk has about `chunk_size` bytes,
    /// but at least one unit and one unit of the source's granularity. `unit` and `chunk_size` are
    /// powers of two.
    pub(crate) fn new(
        source: &'a dyn Source,
        unit: u64,
        chunk_size: u64,
        limits: ZeroLimits,
    ) -> Self {
        let granularity = unit.max(usable(source.granularity(), chunk_size));
        let total = limits.total / unit * unit;
        let piece = (limits.piece / unit * unit).max(unit);
        let limits = ZeroLimits { piece, alone: limits.alone.max(unit).min(piece), total };
        Self {
            source,
            size: source.size(),
            unit,
            chunk_size: chunk_size.max(granularity),
            granularity,
            limits,
            zeros_left: total,
            position: 0,
            next_number: 0,
            extents: Lookahead::default(),
        }
    }

    /// Returns the maximum number of bytes of data in a chunk.
    pub(crate) fn chunk_size(&self) -> u64 {
        self.chunk_size
    }

    /// Appends data up to the next unit of zeros. Returns whether there was room.
    fn push_data(&mut self, chunk: &mut Chunk) -> Result<bool, Error> {
        let start = self.position;
        let room = self.chunk_size - chunk.data_length;
        let mut end = start.saturating_add(room) / self.granularity * self.granularity;
        if end <= start {
            if chunk.data_length > 0 {
                return Ok(false);
            }
            end = start.saturating_add(self.granularity) / self.granularity * self.granularity;
        }
        let end = end.min(self.size);

        let mut position = start;
        while position < end {
            let extent = self.extent(position)?;
            if extent.kind == ExtentKind::Data {
                let length = extent.length.min(end - position);
                chunk.push_read(Extent { length, ..extent });
                position += length;
                continue;
            }
            let zeros_end = self.zeros_end(position)?;
            let first_unit = position.next_multiple_of(self.unit);
            if zeros_end / self.unit * self.unit > first_unit {
                position = first_unit;
                break;
            }
            position = zeros_end.min(end);
        }
        let length = position - start;
        chunk.push(Piece::Data { offset: start, length }, length);
        chunk.data_length += length;
        self.position = position;
        Ok(true)
    }

    /// Returns the end of the zeros that begin at `position`, or `position` if there are none.
    fn zeros_end(&mut self, position: u64) -> Result<u64, Error> {
        let mut end = position;
        // Stops above the limit, where the caller fails anyway.
        while end < self.size && (end - position) / self.unit <= self.zeros_left / self.unit {
            let extent = self.extent(end)?;
            if extent.kind != ExtentKind::Zero {
                break;
            }
            end = extent.end();
        }
        if end > position {
            self.extents.zeros =
                Extent { offset: position, length: end - position, kind: ExtentKind::Zero };
        }
        Ok(end)
    }

    /// Returns the part of an extent that starts at `position`.
    fn extent(&mut self, position: u64) -> Result<Extent, Error> {
        if let Some(extent) = self.extents.get(position) {
            return Ok(extent);
        }
        let limit = self.size - position;
        let extent = self.source.extent(position, limit)?;
        if extent.offset != position || extent.length == 0 || extent.length > limit {
            return Err(Error::Extent { offset: extent.offset, length: extent.length, limit });
        }
        match extent.kind {
            ExtentKind::Data => self.extents.data = extent,
            ExtentKind::Zero => self.extents.zeros = extent,
        }
        Ok(extent)
    }
}

impl Planner for Plan<'_> {
    type Chunk = Chunk;

    fn next(&mut self, chunk: &mut Chunk) -> Result<bool, Error> {
        chunk.clear();
        chunk.number = self.next_number;
        chunk.offset = self.position;
        self.next_number += 1;
        while self.position < self.size && chunk.reads.len() < MAX_READS {
            let zeros = self.zeros_end(self.position)? - self.position;
            let zeros = zeros - zeros % self.unit;
            if zeros > self.zeros_left {
                return Err(Error::Zeros { limit: self.limits.total });
            }
            let length = zeros.min(self.limits.piece);
            let long = length >= self.limits.alone;
            if long && chunk.length > 0 {
                break;
            }
            if length > 0 {
                chunk.push(Piece::Zeros { offset: self.position, length }, length);
                self.position += length;
                self.zeros_left -= length;
            } else if !self.push_data(chunk)? {
                break;
            }
            if long {
                break;
            }
        }
        Ok(chunk.length > 0)
    }

    fn is_over(&self) -> bool {
        self.position >= self.size
    }

    fn read_ahead(&self) -> u64 {
        self.source.read_ahead()
    }

    fn announce(&self, chunk: &Chunk) {
        chunk.reads.iter().for_each(|read| self.source.will_need(read.offset, read.length));
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

/// Returns the part of a source's granularity that chunks of whole blocks can observe, a power of
/// two that fits a thread's buffer.
pub(crate) fn usable(granularity: u64, chunk_size: u64) -> u64 {
    let factor = 1 << granularity.trailing_zeros().min(63);
    if granularity == 0 { 1 } else { factor.min(chunk_size.max(MAX_BUFFER as u64)) }
}

/// The last extents that the source returned.
struct Lookahead {
    zeros: Extent,
    data: Extent,
}

impl Default for Lookahead {
    fn default() -> Self {
        let empty = |kind| Extent { offset: 0, length: 0, kind };
        Self { zeros: empty(ExtentKind::Zero), data: empty(ExtentKind::Data) }
    }
}

impl Lookahead {
    fn get(&self, position: u64) -> Option<Extent> {
        let known = [self.zeros, self.data]
            .into_iter()
            .find(|extent| extent.offset <= position && position < extent.end())?;
        Some(Extent { offset: position, length: known.end() - position, ..known })
    }
}

impl Chunk {
    fn clear(&mut self) {
        self.pieces.clear();
        self.reads.clear();
        self.data_length = 0;
        self.length = 0;
    }

    /// Returns the offset and length of each piece of data.
    pub(crate) fn data(&self) -> impl Iterator<Item = (u64, u64)> {
        self.pieces.iter().filter_map(|piece| match *piece {
            Piece::Data { offset, length } => Some((offset, length)),
            Piece::Zeros { .. } => None,
        })
    }

    fn push(&mut self, piece: Piece, length: u64) {
        self.pieces.push(piece);
        self.length += length;
    }

    fn push_read(&mut self, extent: Extent) {
        match self.reads.last_mut() {
            Some(last) if extent.offset - last.end() < MIN_GAP => {
                last.length = extent.end() - last.offset;
            }
            _ => self.reads.push(extent),
        }
    }
}

/// Shorter gaps of zeros are read rather than skipped, because a page is read as a whole.
const MIN_GAP: u64 = 4 << 10;

/// Maximum number of extents of data in a chunk of an image, which limits its memory.
/// Limit in extents.
const MAX_READS: usize = 1 << 12;
