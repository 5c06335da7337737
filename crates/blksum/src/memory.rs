//! The data of a chunk, wherever it lies: read into a buffer, or lent by the source.

use blkimage::{Buffer, Extent, Lent, Source};

use crate::Error;
use crate::plan::Chunk;

/// Memory for the data of one chunk after the other.
#[derive(Default)]
pub(crate) struct Memory {
    /// What was read, one piece behind the other.
    buffer: Buffer,
    /// What was lent, one entry for each piece of data. None: it is in the buffer.
    lent: Vec<Option<Lent>>,
    /// The same of the chunk before; empty but for a moment.
    before: Vec<Option<Lent>>,
}

impl Memory {
    /// Brings the data of all pieces here, in place of that of the last chunk. With `lend`, as much of
    /// it as can be stays where it is.
    pub(crate) fn fetch(
        &mut self,
        source: &dyn Source,
        chunk: &Chunk,
        lend: bool,
    ) -> Result<(), Error> {
        let mut to_read = 0;
        // What was lent before is kept until there is the next: it is likely to lie beside it.
        std::mem::swap(&mut self.lent, &mut self.before);
        for (offset, length) in chunk.data() {
            let lent = if lend { source.lend(offset, length as usize) } else { None };
            to_read += if lent.is_none() { length as usize } else { 0 };
            self.lent.push(lent);
        }
        self.before.clear();
        self.buffer.grow(to_read);
        let mut buffer = self.buffer.as_mut();
        let mut reads = chunk.reads.as_slice();
        for ((offset, length), lent) in chunk.data().zip(&self.lent) {
            if lent.is_none() {
                let (these, rest) = buffer.split_at_mut(length as usize);
                fill(source, these, offset, &mut reads)?;
                buffer = rest;
            }
        }
        Ok(())
    }

    /// Whether the data is the content of the source: what was made of it is worthless otherwise.
    pub(crate) fn is_intact(&self) -> bool {
        self.lent.iter().flatten().all(Lent::is_intact)
    }

    /// At least `length` bytes of the buffer, for whoever reads on his own.
    pub(crate) fn buffer(&mut self, length: usize) -> &mut [u8] {
        self.buffer.grow(length);
        self.buffer.as_mut()
    }

    /// The data of the chunk's pieces, in their order.
    pub(crate) fn data(&self) -> Data<'_> {
        Data { buffer: self.buffer.as_ref(), lent: self.lent.iter() }
    }
}

/// The data of one piece after the other.
pub(crate) struct Data<'a> {
    buffer: &'a [u8],
    lent: std::slice::Iter<'a, Option<Lent>>,
}

impl<'a> Data<'a> {
    /// That of the next piece with data, which has `length` bytes.
    pub(crate) fn next(&mut self, length: u64) -> &'a [u8] {
        if let Some(Some(lent)) = self.lent.next() {
            return lent.as_ref();
        }
        let (these, rest) = self.buffer.split_at(length as usize);
        self.buffer = rest;
        these
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
