//! Cuts the content of an image into work: what has to be read, what is known to be zeros.

use blkimage::{Extent, ExtentKind, Source};

use crate::Error;
use crate::pipeline::MAX_BUFFER;

/// Hands out the content of an image from its beginning to its end, in chunks that one thread
/// reads and hashes at a time. Extents are asked for as the plan moves on, never collected.
pub(crate) struct Plan<'a> {
    source: &'a dyn Source,
    size: u64,
    block_size: u64,
    chunk_size: u64,
    /// Chunks are cut at multiples of this.
    unit: u64,
    /// Zero blocks that one chunk may hold in a row.
    max_zero_run: u64,
    /// Bytes of zero blocks that may come in all.
    max_zeros: u64,
    /// Zero blocks that may still come.
    zero_blocks_left: u64,
    position: u64,
    next_number: u64,
    extents: Lookahead,
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

/// A part of a chunk. It begins at the bound of a block, and ends at one or with the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// So many whole blocks of zeros.
    ZeroBlocks(u64),
    /// Bytes from `offset` on, each block of which has data.
    Data { offset: u64, length: u64 },
}

impl<'a> Plan<'a> {
    /// A plan for blocks of `block_size` bytes, and chunks of about `chunk_size`, but at least one
    /// block and one unit of the source's granularity. Both are powers of two.
    pub(crate) fn new(source: &'a dyn Source, block_size: u64, chunk_size: u64) -> Self {
        let unit = block_size.max(usable(source.granularity(), chunk_size));
        Self {
            source,
            size: source.size(),
            block_size,
            chunk_size: chunk_size.max(unit),
            unit,
            max_zero_run: u64::MAX,
            max_zeros: u64::MAX,
            zero_blocks_left: u64::MAX,
            position: 0,
            next_number: 0,
            extents: Lookahead::default(),
        }
    }

    /// The same with at most `count` zero blocks in a chunk.
    pub(crate) fn with_max_zero_run(self, count: u64) -> Self {
        Self { max_zero_run: count, ..self }
    }

    /// The same with at most `count` zero blocks in all: more are an error.
    pub(crate) fn with_max_zero_blocks(self, count: u64) -> Self {
        let max_zeros = count.saturating_mul(self.block_size);
        Self { max_zeros, zero_blocks_left: count, ..self }
    }

    /// Bytes of a block.
    pub(crate) fn block_size(&self) -> u64 {
        self.block_size
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
            if zeros / self.block_size > self.zero_blocks_left {
                return Err(Error::Zeros { limit: self.max_zeros });
            }
            let count = (zeros / self.block_size).min(self.max_zero_run);
            let long = count >= LONG_RUN.min(self.max_zero_run);
            if long && chunk.length > 0 {
                break;
            }
            if count > 0 {
                chunk.push(Piece::ZeroBlocks(count), count * self.block_size);
                self.position += count * self.block_size;
                self.zero_blocks_left -= count;
            } else if !self.push_data(chunk)? {
                break;
            }
            if long {
                break;
            }
        }
        Ok(chunk.length > 0)
    }

    /// Whether there is no chunk left.
    pub(crate) fn is_at_end(&self) -> bool {
        self.position == self.size
    }

    /// Appends blocks from here on up to the next zero block. Returns whether there was room.
    fn push_data(&mut self, chunk: &mut Chunk) -> Result<bool, Error> {
        let start = self.position;
        let room = self.chunk_size - chunk.data_length;
        let mut end = start.saturating_add(room) / self.unit * self.unit;
        if end <= start {
            if chunk.data_length > 0 {
                return Ok(false);
            }
            end = start.saturating_add(self.unit) / self.unit * self.unit;
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
            let first_block = position.next_multiple_of(self.block_size);
            if zeros_end / self.block_size * self.block_size > first_block {
                position = first_block;
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
        while end < self.size && (end - position) / self.block_size <= self.zero_blocks_left {
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
            Piece::ZeroBlocks(_) => None,
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

/// Zero blocks in a row that make a chunk of their own, so that their digests are folded while
/// others read.
const LONG_RUN: u64 = 1 << 15;

/// Fewer zeros than this are read rather than jumped over: a page is read as a whole in any case.
const MIN_GAP: u64 = 4 << 10;

/// Extents of data after which a chunk ends, however small they are: they bound its memory.
const MAX_READS: usize = 1 << 12;
