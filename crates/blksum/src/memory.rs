//! Holds the data of a chunk, either read into a buffer or lent by the source.

use blkimage::{Buffer, Extent, Lent, Source};

use crate::Error;
use crate::plan::Chunk;

/// Memory for the data of one chunk at a time.
#[derive(Default)]
pub(crate) struct Memory {
    /// Data that was read, one part after the other.
    buffer: Buffer,
    parts: Vec<Part>,
    /// Parts of the previous chunk. Empty except during [`Memory::fetch`].
    before: Vec<Part>,
}

/// A part of a piece of data. Contains whole blocks, except at the end of the content.
struct Part {
    offset: u64,
    length: usize,
    /// Lent data, or `None` if the data is in the buffer.
    lent: Option<Lent>,
}

impl Memory {
    /// Replaces the data with the data of `chunk`. If `lend` is set, borrows as much as possible from the source, in
    /// multiples of `lend` bytes, and reads the rest.
    pub(crate) fn fetch(
        &mut self,
        source: &dyn Source,
        chunk: &Chunk,
        lend: Option<u64>,
    ) -> Result<(), Error> {
        // Keeps the previous parts lent until the new ones are, because they are likely adjacent.
        std::mem::swap(&mut self.parts, &mut self.before);
        for (offset, length) in chunk.data() {
            self.borrow(source, offset, length as usize, lend);
        }
        self.before.clear();
        let to_read = self.parts.iter().filter(|part| part.lent.is_none());
        self.buffer.grow(to_read.map(|part| part.length).sum());
        let mut buffer = self.buffer.as_mut();
        let mut reads = chunk.reads.as_slice();
        for part in self.parts.iter().filter(|part| part.lent.is_none()) {
            let (these, rest) = buffer.split_at_mut(part.length);
            fill(source, these, part.offset, &mut reads)?;
            buffer = rest;
        }
        Ok(())
    }

    /// Cuts a piece into lent parts, as far as the source has the data in memory, and one part to
    /// read.
    fn borrow(
        &mut self,
        source: &dyn Source,
        mut offset: u64,
        mut length: usize,
        lend: Option<u64>,
    ) {
        while length > 0
            && let Some(unit) = lend
            && let Some(mut lent) = source.lend(offset, length)
        {
            let mut taken = lent.as_ref().len();
            if taken < length {
                taken -= taken % unit as usize;
                lent.truncate(taken);
            }
            if taken == 0 {
                break;
            }
            self.parts.push(Part { offset, length: taken, lent: Some(lent) });
            offset += taken as u64;
            length -= taken;
        }
        if length > 0 {
            self.parts.push(Part { offset, length, lent: None });
        }
    }

    /// Returns whether the lent data is still the content of the source. If not, results computed
    /// from it are invalid.
    pub(crate) fn is_intact(&self) -> bool {
        self.parts.iter().filter_map(|part| part.lent.as_ref()).all(Lent::is_intact)
    }

    /// Returns at least `length` bytes of the buffer, for a caller that reads the data itself.
    pub(crate) fn buffer(&mut self, length: usize) -> &mut [u8] {
        self.buffer.grow(length);
        self.buffer.as_mut()
    }

    /// Returns the data of the chunk's pieces in order.
    pub(crate) fn data(&self) -> Data<'_> {
        Data { buffer: self.buffer.as_ref(), parts: self.parts.iter() }
    }
}

/// Iterates over the data of pieces in order.
pub(crate) struct Data<'a> {
    buffer: &'a [u8],
    parts: std::slice::Iter<'a, Part>,
}

impl<'a> Data<'a> {
    /// Passes the next piece of data, which has `length` bytes, to `take` part by part.
    pub(crate) fn next(&mut self, length: u64, mut take: impl FnMut(&'a [u8])) {
        let mut left = length as usize;
        while left > 0 {
            let part = self.parts.next().expect("all pieces were fetched");
            take(match &part.lent {
                Some(lent) => lent.as_ref(),
                None => {
                    let (these, rest) = self.buffer.split_at(part.length);
                    self.buffer = rest;
                    these
                }
            });
            left -= part.length;
        }
    }
}

/// Fills `buffer` with the content at `offset`. Reads the extents in `reads` and fills the gaps
/// between them with zeros. Leaves the extents that end after the buffer in `reads`.
pub(crate) fn fill(
    source: &dyn Source,
    buffer: &mut [u8],
    offset: u64,
    reads: &mut &[Extent],
) -> Result<(), Error> {
    let end = offset + buffer.len() as u64;
    let mut position = offset;
    while let Some((extent, rest)) = reads.split_first() {
        let (from, to) = (extent.offset.max(offset), extent.end().min(end));
        if from >= end {
            break;
        }
        if from < to {
            buffer[(position - offset) as usize..(from - offset) as usize].fill(0);
            source.read_exact_at(
                &mut buffer[(from - offset) as usize..(to - offset) as usize],
                from,
            )?;
            position = to;
        }
        if extent.end() > end {
            break;
        }
        *reads = rest;
    }
    buffer[(position - offset) as usize..].fill(0);
    Ok(())
}
