//! Cuts the content of an image into work: what has to be read, what is known to be zeros.

use blkimage::{Extent, ExtentKind, Source};

use crate::Error;
use crate::tuning::MAX_BUFFER;

/// Hands out the content of an image from its beginning to its end, in chunks that one thread
/// reads and hashes at a time. Extents are asked for as the plan moves on, never collected.
pub(crate) struct Plan<'a> {
    source: &'a dyn Source,
    size: u64,
    /// Pieces are cut at multiples of this: whole blocks, whatever their size.
    unit: u64,
    chunk_size: u64,
    /// Pieces of data end at multiples of this where they can.
    granularity: u64,
    limits: ZeroLimits,
    /// Bytes of zeros that may still come.
    zeros_left: u64,
    position: u64,
    next_number: u64,
    extents: Lookahead,
}

/// How many zeros there may be, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZeroLimits {
    /// In one piece.
    pub(crate) piece: u64,
    /// So many in a row are a chunk of their own, so that one thread is busy with them while others
    /// read.
    pub(crate) alone: u64,
    /// In all: more are an error.
    pub(crate) total: u64,
}

/// A part of the content: its pieces follow each other without a gap.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// Its place among the chunks.
    pub(crate) number: u64,
    /// Where its first piece begins.
    pub(crate) offset: u64,
    pub(crate) pieces: Vec<Piece>,
    /// What is to be read of the pieces with data, in order; what lies between is zeros.
    pub(crate) reads: Vec<Extent>,
    /// Bytes of the pieces that are to be read.
    pub(crate) data_length: u64,
    /// Bytes of all pieces.
    pub(crate) length: u64,
}

/// A part of a chunk. It begins at a multiple of the plan's unit, and ends at one or with the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Zeros, whole units of them.
    Zeros { offset: u64, length: u64 },
    /// Bytes each unit of which has data.
    Data { offset: u64, length: u64 },
}

impl<'a> Plan<'a> {
    /// A plan for blocks that units of `unit` bytes are made of, and chunks of about `chunk_size`, but
    /// at least one unit and one of the source's granularity. Both are powers of two.
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

    /// The most bytes of data in a chunk.
    pub(crate) fn chunk_size(&self) -> u64 {
        self.chunk_size
    }

    /// Makes `chunk` the next one. Returns whether there is one.
    pub(crate) fn next(&mut self, chunk: &mut Chunk) -> Result<bool, Error> {
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

    /// Appends data from here on up to the next unit of zeros. Returns whether there was room.
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

    /// Where the zeros that begin at `position` end: there, if there are none.
    fn zeros_end(&mut self, position: u64) -> Result<u64, Error> {
        let mut end = position;
        // Beyond what may come it is of no use to know.
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

    /// What of an extent lies behind `position`.
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

/// The part of a source's granularity that chunks of whole blocks can keep to: a power of two that
/// fits a thread's buffer.
fn usable(granularity: u64, chunk_size: u64) -> u64 {
    let factor = 1 << granularity.trailing_zeros().min(63);
    if granularity == 0 { 1 } else { factor.min(chunk_size.max(MAX_BUFFER as u64)) }
}

/// The extents that were asked for last.
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

    /// Offset and length of each piece with data.
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

/// Fewer zeros than this are read rather than jumped over: a page is read as a whole in any case.
const MIN_GAP: u64 = 4 << 10;

/// Extents of data after which a chunk ends, however small they are: they bound its memory.
const MAX_READS: usize = 1 << 12;
