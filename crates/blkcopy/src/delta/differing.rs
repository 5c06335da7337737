//! Finds the blocks of a source that differ from a map.

use std::ops::{ControlFlow, Range};

use blkhash::{BlockDigests, Run, Sink, SinkError, is_zero};
use blkimage::{Buffer, Source};
use blkmap::{Lookup, Map};

use super::format::{Header, Kind, Record};
use crate::Error;

/// Receives a record: the digests of the blocks in the map, none past its end, and the bytes, none if they are zeros.
pub(crate) type Take<'a> = dyn FnMut(Record, &[u8], &[u8]) -> Result<(), Error> + Send + 'a;

/// Compares the digests of a source with a map's. What differs is read once more, and passed on in order.
pub(crate) struct Differing<'a> {
    lookup: Lookup<'a>,
    pending: Pending<'a>,
    /// Number of the next block.
    next: u64,
}

impl<'a> Differing<'a> {
    /// Begins with the first block.
    pub fn new(
        base: &'a Map,
        header: Header,
        source: &'a dyn Source,
        take: Box<Take<'a>>,
    ) -> Result<Self, Error> {
        let lookup = Lookup::new(base).map_err(Error::Base)?;
        let (record, old, buffer) = (None, Vec::new(), Buffer::default());
        let pending = Pending { source, header, record, old, buffer, take, changed: 0 };
        Ok(Self { lookup, pending, next: 0 })
    }

    /// Passes on what is left, and returns the number of bytes in all blocks that differ.
    pub fn end(mut self) -> Result<u64, Error> {
        self.pending.flush()?;
        Ok(self.pending.changed)
    }

    fn run(&mut self, run: Run<'_>) -> Result<(), Error> {
        let Self { lookup, pending, .. } = self;
        let first = self.next;
        let (count, kind) = match run {
            Run::Digests { count, .. } => (count, Kind::Data),
            Run::Zeros { count } => (count, Kind::Zeros),
        };
        let end = first + count;
        self.next = end;
        let (before, always) = (pending.header.blocks()[0], pending.header.always_from());
        let compared = always.clamp(first, end);
        let part = match run {
            Run::Digests { digests, .. } => {
                let length = (compared - first) as usize * (digests.len() / count as usize);
                Run::Digests { count: compared - first, digests: &digests[..length] }
            }
            Run::Zeros { .. } => Run::Zeros { count: compared - first },
        };
        let mut result = Ok(());
        let differences = lookup.differences(first, part, &mut |block, old| {
            result = pending.push(kind, block, 1, old);
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        differences.map_err(Error::Base)?;
        result?;
        for block in compared..end.min(before) {
            let old = lookup.digest(block).map_err(Error::Base)?;
            pending.push(kind, block, 1, old.as_bytes())?;
        }
        let mut at = compared.max(before);
        while at < end {
            // A hole may be larger than what a record of data holds.
            let count = if kind == Kind::Zeros { end - at } else { 1 };
            pending.push(kind, at, count, &[])?;
            at += count;
        }
        Ok(())
    }
}

impl Sink<BlockDigests> for Differing<'_> {
    fn take(&mut self, digests: &BlockDigests) -> Result<(), SinkError> {
        digests.runs().try_for_each(|run| self.run(run)).map_err(Into::into)
    }
}

/// Blocks that differ, which are passed on together.
struct Pending<'a> {
    source: &'a dyn Source,
    header: Header,
    record: Option<Record>,
    /// The digests of the blocks in the map.
    old: Vec<u8>,
    buffer: Buffer,
    take: Box<Take<'a>>,
    /// Number of bytes in all blocks that were passed on.
    changed: u64,
}

impl Pending<'_> {
    fn push(&mut self, kind: Kind, first: u64, count: u64, old: &[u8]) -> Result<(), Error> {
        let max = self.header.max_count();
        if let Some(record) = &mut self.record
            && (record.kind, record.first + record.count) == (kind, first)
            && self.old.is_empty() == old.is_empty()
            && record.count + count <= max
        {
            record.count += count;
        } else {
            self.flush()?;
            self.record = Some(Record { kind, first, count });
        }
        self.old.extend(old);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let Some(mut record) = self.record.take() else { return Ok(()) };
        let Range { start, end } = self.header.range(&record);
        let length = end - start;
        self.changed += length;
        let mut data: &[u8] = &[];
        if record.kind == Kind::Data {
            self.buffer.grow(length as usize);
            let bytes = &mut self.buffer.as_mut()[..length as usize];
            let read = self.source.read_exact_at(bytes, start);
            read.map_err(|error| Error::Source(error.into()))?;
            match is_zero(bytes) {
                true => record.kind = Kind::Zeros,
                false => data = bytes,
            }
        }
        (self.take)(record, &self.old, data)?;
        self.old.clear();
        Ok(())
    }
}
