//! The data of a chunk, wherever it lies: read into a buffer, or lent by the source.

use blkimage::{Buffer, Extent, Lent, Source};

use crate::Error;
use crate::plan::Chunk;

/// Memory for the data of one chunk after the other.
#[derive(Default)]
pub(crate) struct Memory {
    /// What was read, one part behind the other.
    buffer: Buffer,
    parts: Vec<Part>,
    /// Those of the chunk before; empty but for a moment.
    before: Vec<Part>,
}

/// A part of a piece of data: whole blocks, but at the end of the content.
struct Part {
    offset: u64,
    length: usize,
    /// None: it is in the buffer.
    lent: Option<Lent>,
}

impl Memory {
    /// Brings the data of all pieces here, in place of that of the last chunk. With `lend`, as much of
    /// it as can be stays where it is, in multiples of that many bytes.
    pub(crate) fn fetch(
        &mut self,
        source: &dyn Source,
        chunk: &Chunk,
        lend: Option<u64>,
    ) -> Result<(), Error> {
        // What was lent before is kept until there is the next: it is likely to lie beside it.
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

    /// Cuts a piece into parts that are lent, as far as the source has them in memory, and one that is
    /// to be read.
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

    /// Whether the data is the content of the source: what was made of it is worthless otherwise.
    pub(crate) fn is_intact(&self) -> bool {
        self.parts.iter().filter_map(|part| part.lent.as_ref()).all(Lent::is_intact)
    }

    /// At least `length` bytes of the buffer, for whoever reads on his own.
    pub(crate) fn buffer(&mut self, length: usize) -> &mut [u8] {
        self.buffer.grow(length);
        self.buffer.as_mut()
    }

    /// The data of the chunk's pieces, in their order.
    pub(crate) fn data(&self) -> Data<'_> {
        Data { buffer: self.buffer.as_ref(), parts: self.parts.iter() }
    }
}

/// The data of one piece after the other.
pub(crate) struct Data<'a> {
    buffer: &'a [u8],
    parts: std::slice::Iter<'a, Part>,
}

impl<'a> Data<'a> {
    /// Hands over that of the next piece with data, which has `length` bytes, part by part.
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

/// Fills `buffer` with the content from `offset` on: what `reads` names is read, what lies between
/// is zeros. Leaves in `reads` what lies behind.
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
