//! Sends what differs from a map.

use std::io::{self, Write};
use std::ops::ControlFlow;

use blkhash::{BlockDigests, Parameters, Run, Sink, SinkError, is_zero};
use blkimage::{Buffer, Source};
use blkmap::{Lookup, Map};
use blksum::{Pass, Progress, Tuning};

use super::format::{self, Encoder, Header, Kind, Record};
use crate::Error;
use crate::copied::Copied;

/// The result of sending a delta.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sent {
    /// The result: the checksum and the size of the source.
    pub copied: Copied,
    /// Number of bytes in the blocks that differ.
    pub changed: u64,
    /// Number of bytes that were written.
    pub length: u64,
}

/// Writes the delta to `output` that makes the content of `base` that of `source`. It states the checksum with `parameters`.
///
/// Reads all of the source, and the blocks that differ twice.
///
/// # Errors
///
/// Fails if the source cannot be read or changed meanwhile, if the map cannot be read or does not know every block, or if the
/// output cannot be written.
pub fn send_delta(
    base: &Map,
    source: &dyn Source,
    output: &mut (dyn Write + Send),
    parameters: &Parameters,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Sent, Error> {
    let size = source.size();
    let header = Header { map: *base.header(), base_size: base.commit().image_size(), size };
    let lookup = Lookup::new(base).map_err(Error::Base)?;
    let pending = Pending {
        source,
        encoder: Encoder::new(output, &header).map_err(unwritten)?,
        header,
        record: None,
        old: Vec::new(),
        buffer: Buffer::default(),
        changed: 0,
    };
    let mut sender = Sender { lookup, pending, next: 0 };
    let (leaf, parameters) = (base.header().leaf(), std::slice::from_ref(parameters));
    let pass = Pass::new(parameters).blocks(&leaf, &mut sender);
    let digest = pass.run(source, tuning, progress).map_err(Error::of_pass)?[0];
    let mut pending = sender.pending;
    pending.flush()?;
    source.check_unchanged().map_err(|error| Error::Source(error.into()))?;
    pending.encoder.end(&format::end(&parameters[0], &digest)).map_err(unwritten)?;
    let copied = Copied::new(vec![digest], size, None);
    Ok(Sent { copied, changed: pending.changed, length: pending.encoder.length })
}

/// Compares the digests of the source with those of the map.
struct Sender<'a> {
    lookup: Lookup<'a>,
    pending: Pending<'a>,
    /// Number of the next block.
    next: u64,
}

impl Sender<'_> {
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

impl Sink<BlockDigests> for Sender<'_> {
    fn take(&mut self, digests: &BlockDigests) -> Result<(), SinkError> {
        digests.runs().try_for_each(|run| self.run(run)).map_err(Into::into)
    }
}

/// Blocks that differ, which are sent together.
struct Pending<'a> {
    source: &'a dyn Source,
    encoder: Encoder<'a>,
    header: Header,
    record: Option<Record>,
    /// The digests that the blocks had before, none behind the old end.
    old: Vec<u8>,
    buffer: Buffer,
    /// Number of bytes in all blocks that were sent.
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

    /// Sends the blocks.
    fn flush(&mut self) -> Result<(), Error> {
        let Some(mut record) = self.record.take() else { return Ok(()) };
        let start = record.first * self.header.block_size();
        let length = (record.count * self.header.block_size()).min(self.header.size - start);
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
        self.encoder.record(record, &self.old, data).map_err(unwritten)?;
        self.old.clear();
        Ok(())
    }
}

fn unwritten(source: io::Error) -> Error {
    Error::Destination { what: "cannot be written", source }
}
