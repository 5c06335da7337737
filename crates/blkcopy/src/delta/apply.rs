//! Applies a delta to a destination.

use std::io::{self, Read};
use std::iter;
use std::ops::Range;

use blkhash::{Leaf, Parameters, is_zero};
use blkimage::{Buffer, ExtentKind, Image, Slice, Source};
use blksum::{Progress, Tee, Tuning};

use super::format::{Decoder, Header, Item, Record};
use crate::copied::{Amounts, Copied};
use crate::copy::{Verify, Written};
use crate::destination::Destination;
use crate::writer::Writer;
use crate::zeros::runs;
use crate::{Error, Zeros};

/// Writes a delta to a destination.
#[derive(Clone, Copy, Debug, Default)]
pub struct Apply {
    zeros: Zeros,
    verify: Verify,
    is_forced: bool,
}

impl Apply {
    /// Begins with the defaults: the destination is read back.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what becomes of zeros.
    #[must_use]
    pub fn zeros(self, zeros: Zeros) -> Self {
        Self { zeros, ..self }
    }

    /// Sets what is compared with the checksum afterwards.
    #[must_use]
    pub fn verify(self, verify: Verify) -> Self {
        Self { verify, ..self }
    }

    /// Overwrites blocks whatever they hold, and what is past the old end of a larger device. The size must be right in
    /// any case.
    #[must_use]
    pub fn force(self, is_forced: bool) -> Self {
        Self { is_forced, ..self }
    }

    /// Reads a delta to its end, and writes its blocks to `destination`. Each block that is overwritten must equal the
    /// block of the map which the delta was made for, or be as it becomes, so that a delta that was applied in part can
    /// be applied again. Only where an interruption left a part of a block, that must be forced. `parameters` select
    /// the checksums to return. There are none if the destination is not read back. Memory use depends on the size of
    /// the blocks only.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Delta`] if the delta is damaged or ends early, with [`Error::NotBase`] if the destination holds
    /// something else than the map, and with [`Error::Differs`] if it does not have the checksum afterwards. Fails also if it is
    /// too small, or cannot be read or written. What was applied before stays.
    pub fn run(
        &self,
        delta: &mut dyn Read,
        mut destination: Box<dyn Destination>,
        parameters: &[Parameters],
        tuning: &Tuning,
        writing: &Progress,
        reading: &Progress,
    ) -> Result<Copied, Error> {
        let mut decoder = Decoder::new(delta)?;
        let header = decoder.header;
        writing.set_total(header.size);
        let unread = |error: blkimage::Error| Error::ReadBack(error.into());
        let old = destination.current().map_err(unread)?;
        let (found, needed) = (old.virtual_size(), header.base_size.max(header.size));
        let can_resize = destination.can_resize();
        if can_resize {
            header.check_size(&old)?;
        } else if found < needed {
            return Err(Error::SmallForDelta { size: found, needed });
        }
        if header.size == 0 && found > 0 && can_resize && !self.is_forced {
            return Err(Error::Empties);
        }
        // A file grows as it is written, and is cut at the end.
        destination.begin(Some(if can_resize { found } else { needed }), true)?;
        let writer = Writer::new(&*destination, self.zeros, false, None, false, writing);
        let old = (!self.is_forced).then_some(&old);
        let leaf = header.map.leaf();
        let buffer = Buffer::default();
        let mut blocks = Blocks { header, leaf, old, zeros: self.zeros, writer, buffer, equal: 0 };
        let (stated, digest) = loop {
            match decoder.next()? {
                Item::Blocks { record, old, data } => {
                    blocks.apply(record, old, data)?;
                    let done = header.range(&record).end;
                    let advance = done.saturating_sub(writing.done());
                    writing.advance(advance, advance);
                }
                Item::End(end) => break *end,
            }
        };
        let amounts = Amounts { equal: blocks.equal, ..blocks.writer.amounts() };
        let copied = Copied::new(vec![digest], header.size, Some(amounts));
        drop(blocks);
        writing.advance(header.size.saturating_sub(writing.done()), 0);
        if found > header.size && can_resize {
            check_before_cut(&*destination, &stated, &copied, tuning)?;
        }
        let written = Written::end(copied, destination)?;
        if self.verify == Verify::Source {
            return Ok(Copied { digests: Vec::new(), ..written.into_copied() });
        }
        let is_other = |own: &&Parameters| **own != stated;
        let all: Vec<_> =
            iter::once(&stated).chain(parameters.iter().filter(is_other)).copied().collect();
        let (copied, _) = written.read_back(&all, None, tuning, reading)?;
        let of = |own| copied.digests[all.iter().position(|it| it == own).expect("one of all")];
        Ok(Copied { digests: parameters.iter().map(of).collect(), ..copied })
    }
}

/// Checks that a file has the checksum without what is about to be cut off.
fn check_before_cut(
    destination: &dyn Destination,
    stated: &Parameters,
    copied: &Copied,
    tuning: &Tuning,
) -> Result<(), Error> {
    let unread = |error: blkimage::Error| Error::ReadBack(error.into());
    let image = destination.current().map_err(unread)?;
    let rest = Slice::new(&image, 0, copied.size).expect("a part of the file");
    let found = blksum::checksum(&rest, stated, tuning, &Progress::new());
    match found.map_err(Error::ReadBack)? == copied.digests[0] {
        true => Ok(()),
        false => Err(Error::Differs { at: None }),
    }
}

/// Writes the blocks of a delta.
struct Blocks<'a> {
    header: Header,
    leaf: Leaf,
    /// The destination, unless what it holds does not matter.
    old: Option<&'a Image>,
    zeros: Zeros,
    writer: Writer<'a>,
    buffer: Buffer,
    /// Number of bytes that the destination had already.
    equal: u64,
}

impl Blocks<'_> {
    fn apply(&mut self, record: Record, digests: &[u8], data: Option<&[u8]>) -> Result<(), Error> {
        let block_size = self.header.block_size();
        let Range { start, end } = self.header.range(&record);
        let Some(old) = self.old else { return self.write(start, end, start, data) };
        self.check_added(old, self.header.base_size.max(start), end, start, data)?;
        if digests.is_empty() {
            return self.write(start, end, start, data);
        }
        // The last block may become longer or shorter, and a destination may have its new size already.
        let there = (start + record.count * block_size)
            .min(self.header.base_size.max(self.header.size))
            .min(old.virtual_size());
        let length = there.saturating_sub(start);
        self.buffer.grow(length as usize);
        let bytes = &mut self.buffer.as_mut()[..length as usize];
        old.read_exact_at(bytes, start).map_err(|error| Error::Range {
            offset: start,
            length,
            what: "read",
            source: io::Error::other(error),
        })?;
        let bytes = &self.buffer.as_ref()[..length as usize];
        let part = |from: u64, to: u64| {
            bytes.get((from - start) as usize..(to.min(there).max(from) - start) as usize)
        };
        // The blocks from here on have to be written.
        let (mut from, mut equal) = (start, 0);
        let digests = digests.chunks_exact(self.leaf.digest_size());
        for (at, digest) in (start..end).step_by(block_size as usize).zip(digests) {
            let next = (at + block_size).min(end);
            let new = data.map(|data| &data[(at - start) as usize..(next - start) as usize]);
            let found = part(at, next);
            let is_new = found.is_some_and(|found| match new {
                Some(new) => found == new,
                None => found.len() as u64 == next - at && is_zero(found),
            });
            if is_new {
                self.write(from, at, start, data)?;
                equal += next - at;
                from = next;
                continue;
            }
            let whole = (at + block_size).min(self.header.base_size);
            let found = part(at, whole).filter(|found| found.len() as u64 == whole - at);
            if found.is_none_or(|found| self.leaf.hash(found).as_bytes() != digest) {
                return Err(Error::NotBase { offset: at, length: whole - at });
            }
        }
        self.equal += equal;
        self.write(from, end, start, data)
    }

    /// Checks that what the destination has past the old end was written by the same delta before, or is zero. A device
    /// or an export may be larger, and hold something there. The bytes of the record begin at `start`.
    fn check_added(
        &mut self,
        old: &Image,
        mut at: u64,
        end: u64,
        start: u64,
        data: Option<&[u8]>,
    ) -> Result<(), Error> {
        let end = end.min(old.virtual_size());
        while at < end {
            let offset = at;
            let failed =
                |source| Error::Range { offset, length: end - offset, what: "read", source };
            let extent =
                old.extent(at, end - at).map_err(|error| failed(io::Error::other(error)))?;
            if extent.kind == ExtentKind::Zero {
                at += extent.length;
                continue;
            }
            let length = extent.length.min(PART - at % PART) as usize;
            self.buffer.grow(length);
            let part = &mut self.buffer.as_mut()[..length];
            old.read_exact_at(part, at).map_err(|error| failed(io::Error::other(error)))?;
            let new = data.map(|data| &data[(at - start) as usize..][..length]);
            let is_right = |unit: &Range<usize>| {
                is_zero(&part[unit.clone()])
                    || new.is_some_and(|new| part[unit.clone()] == new[unit.clone()])
            };
            runs(
                at,
                length,
                |unit| is_right(&unit),
                |run, is_right| match is_right {
                    true => Ok(()),
                    false => Err(Error::NotBase {
                        offset: at + run.start as u64,
                        length: run.len() as u64,
                    }),
                },
            )?;
            at += length as u64;
        }
        Ok(())
    }

    /// Writes a part of a record whose bytes begin at `start`.
    fn write(&self, from: u64, to: u64, start: u64, data: Option<&[u8]>) -> Result<(), Error> {
        if from == to {
            return Ok(());
        }
        let written = match data {
            Some(data) => {
                let data = &data[(from - start) as usize..(to - start) as usize];
                match self.zeros {
                    Zeros::Punch => self.writer.data(from, data),
                    // In one call, so that an interruption does not leave a part of a block.
                    _ => return self.writer.write(from, data),
                }
            }
            None => self.writer.zeros(from, to - from),
        };
        written.map_err(Error::of_sink)
    }
}

/// Bytes past the old end that are read at a time.
const PART: u64 = 1 << 20;
