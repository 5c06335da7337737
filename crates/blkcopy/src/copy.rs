//! The copy of an image, from its source to the verdict.
//!
//! A pass hashes the source, and a [`Tee`](blksum::Tee) hands the content of each chunk to the [writer](crate::writer) before. The destination is then
//! flushed, closed for writing and opened as an image, whose checksums must equal the checksums of the pass. If they
//! are not, the two are compared to name the place. With a log, the destination is synced before each commit of the
//! map, and a copy that is resumed continues at the first page that no checkpoint has.

use std::io::Read;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use blkhash::{BlockDigests, BlockSize, Digest, Leaf, Parameters, Sink, SinkError};
use blkimage::{Image, Slice, Source};
use blkmap::Map;
use blksum::changes::Changes;
use blksum::{Pass, Progress, Tee, Tuning};

use crate::copied::{Amounts, Copied};
use crate::delta::{Differing, Header, Kind, Record};
use crate::destination::Destination;
use crate::stream::received;
use crate::writer::Writer;
use crate::{Error, Zeros};

/// What is compared with the content of the source after it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// The content of the destination, which is read back.
    #[default]
    ReadBack,
    /// Nothing: the checksums are of what was read from the source.
    Source,
}

impl Verify {
    /// Fails if checksums with these parameters are equal for all content.
    fn check(self, parameters: &[Parameters]) -> Result<(), Error> {
        let tells = |it: &Parameters| it.algorithm().digest_size() > 0;
        match self {
            Self::ReadBack if !parameters.iter().any(tells) => Err(Error::NoChecksum),
            Self::ReadBack | Self::Source => Ok(()),
        }
    }
}

/// What of a source is copied.
#[derive(Clone, Copy, Default)]
pub enum What<'a> {
    /// All of it.
    #[default]
    All,
    /// What follows this offset, a multiple of the block size: the rest of a copy that was interrupted. What the destination
    /// holds before it stays, and only the digests of what follows are computed. [`Job::write`] is for such a copy.
    From(u64),
    /// The blocks that differ from this map, whose content the destination is trusted to have. They are read twice.
    Differing(&'a Map),
    /// These extents. Only they are compared afterwards, and a file must have the size of the source. The checksums are of all
    /// of the destination, or, if it is not read back, none.
    Only(&'a Changes),
}

/// A copy of an image.
pub struct Job<'a> {
    what: What<'a>,
    pub(crate) parameters: &'a [Parameters],
    blocks: Option<(&'a Leaf, &'a mut (dyn Sink<BlockDigests> + Send))>,
    pub(crate) zeros: Zeros,
    pub(crate) updates: bool,
    pub(crate) verify: Verify,
    file: Option<BorrowedFd<'a>>,
}

impl<'a> Job<'a> {
    /// Begins with what is copied, and the checksums to compute.
    pub fn new(what: What<'a>, parameters: &'a [Parameters]) -> Self {
        let (zeros, verify) = (Zeros::default(), Verify::default());
        Self { what, parameters, blocks: None, zeros, updates: false, verify, file: None }
    }

    /// Passes the digests of all blocks that are read from the source to `sink`, in order. `leaf` defines them. No digests are
    /// passed on with [`What::Differing`] and [`What::Only`].
    #[must_use]
    pub fn blocks(self, leaf: &'a Leaf, sink: &'a mut (dyn Sink<BlockDigests> + Send)) -> Self {
        Self { blocks: Some((leaf, sink)), ..self }
    }

    /// Sets what becomes of zeros.
    #[must_use]
    pub fn zeros(self, zeros: Zeros) -> Self {
        Self { zeros, ..self }
    }

    /// Reads the destination, and writes only what differs, and what cannot be read there.
    #[must_use]
    pub fn update(self, updates: bool) -> Self {
        Self { updates, ..self }
    }

    /// Lets the destination share the storage of this file, whose bytes are the source, if it can. Then nothing is written, the
    /// source is read only with [`Verify::Source`], and the checksums are those that are read back. Only a copy of the whole that
    /// leaves zeros to the destination does that, and no digests of blocks are passed on.
    #[must_use]
    pub fn share(self, file: Option<BorrowedFd<'a>>) -> Self {
        Self { file, ..self }
    }

    /// Sets what is compared afterwards.
    #[must_use]
    pub fn verify(self, verify: Verify) -> Self {
        Self { verify, ..self }
    }

    /// Copies `source` to the start of `destination`. What a larger device or export holds after it stays.
    ///
    /// Runs on the caller's thread and others, like [`blksum::checksum`]. Memory use does not depend on the size.
    ///
    /// # Errors
    ///
    /// Fails if the source cannot be read or changed meanwhile, if the destination is smaller, or cannot be written or read,
    /// and with [`Error::Differs`] if it holds something else afterwards. With [`Verify::ReadBack`], one of the checksums must
    /// not be empty, as of `null`, or nothing is written.
    pub fn run(
        self,
        source: &dyn Source,
        destination: Box<dyn Destination>,
        tuning: &Tuning,
        writing: &Progress,
        reading: &Progress,
    ) -> Result<Copied, Error> {
        let (parameters, verify) = (self.parameters, self.verify);
        verify.check(parameters)?;
        let written = self.write(source, destination, tuning, writing)?;
        written.verified(verify, parameters, Some(source), tuning, reading)
    }

    /// Copies like [`run`](Self::run), and reads nothing back.
    ///
    /// # Errors
    ///
    /// Fails like [`run`](Self::run).
    pub fn write(
        self,
        source: &dyn Source,
        mut destination: Box<dyn Destination>,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<Written, Error> {
        let from = match self.what {
            What::All => 0,
            What::From(offset) => offset.min(source.size()),
            What::Differing(base) => {
                return self.write_differing(base, source, destination, tuning, progress);
            }
            What::Only(changes) => {
                return self.write_changes(changes, source, destination, tuning, progress);
            }
        };
        if let Some(copied) = self.shared(from, source, &mut *destination, tuning, progress)? {
            return Written::end(copied, destination);
        }
        let size = source.size();
        let keeps = self.updates || self.zeros == Zeros::KeepIfZero;
        let is_blank = destination.begin(Some(size), keeps || from > 0)? && from == 0;
        let old = (keeps && !is_blank).then(|| destination.current()).transpose();
        let old = old.map_err(|error| Error::ReadBack(error.into()))?;
        let writer =
            Writer::new(&*destination, self.zeros, is_blank, old.as_ref(), self.updates, progress);
        let rest = Slice::new(source, from, size - from).expect("a part of the source");
        let shifted = Shifted { writer: &writer, from };
        let parameters = if from == 0 { self.parameters } else { &[] };
        let mut pass = Pass::new(parameters).tee(&shifted);
        if let Some((leaf, sink)) = self.blocks {
            pass = pass.blocks(leaf, sink);
        }
        let digests = pass.run(&rest, tuning, progress).map_err(Error::of_pass)?;
        let replaced = writer.replaced();
        let copied = Copied { replaced, ..Copied::new(digests, size, Some(writer.amounts())) };
        drop(writer);
        drop(old);
        Written::end(copied, destination)
    }

    /// Makes the destination share the storage of the source. Returns `None` if it cannot or must not.
    fn shared(
        &self,
        from: u64,
        source: &dyn Source,
        destination: &mut dyn Destination,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<Option<Copied>, Error> {
        let size = source.size();
        let is_plain = size > 0 && from == 0 && !self.updates && self.zeros == Zeros::Auto;
        let is_plain = is_plain && self.blocks.is_none() && destination.can_resize();
        let Some(file) = self.file.filter(|_| is_plain) else { return Ok(None) };
        destination.begin(Some(size), false)?;
        if !destination.share(file) {
            return Ok(None);
        }
        let digests = match self.verify {
            Verify::Source if !self.parameters.is_empty() => {
                blksum::checksums(source, self.parameters, tuning, progress)
                    .map_err(Error::of_pass)?
            }
            Verify::Source | Verify::ReadBack => Vec::new(),
        };
        source.check_unchanged().map_err(|error| Error::Source(error.into()))?;
        let amounts = Amounts { shared: size, ..Amounts::default() };
        Ok(Some(Copied::new(digests, size, Some(amounts))))
    }

    /// Writes what differs from a map.
    fn write_differing(
        self,
        base: &Map,
        source: &dyn Source,
        mut destination: Box<dyn Destination>,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<Written, Error> {
        let header = Header::new(base, source.size());
        let old = destination.current().map_err(|error| Error::ReadBack(error.into()))?;
        if destination.can_resize() {
            header.check_size(&old)?;
        }
        drop(old);
        destination.begin(Some(header.size), true)?;
        let writer = Writer::new(&*destination, self.zeros, false, None, false, progress);
        let take = |record: Record, _: &[u8], data: &[u8]| {
            let Range { start, end } = header.range(&record);
            let written = match record.kind {
                Kind::Zeros => writer.zeros(start, end - start),
                _ => writer.data(start, data),
            };
            written.map_err(Error::of_sink)
        };
        let mut differing = Differing::new(base, header, source, Box::new(take))?;
        let leaf = base.header().leaf();
        let pass = Pass::new(self.parameters).blocks(&leaf, &mut differing);
        let digests = pass.run(source, tuning, progress).map_err(Error::of_pass)?;
        let equal = header.size - differing.end()?;
        source.check_unchanged().map_err(|error| Error::Source(error.into()))?;
        let amounts = Amounts { equal, ..writer.amounts() };
        Written::end(Copied::new(digests, header.size, Some(amounts)), destination)
    }

    /// Writes extents.
    fn write_changes(
        self,
        changes: &Changes,
        source: &dyn Source,
        mut destination: Box<dyn Destination>,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<Written, Error> {
        let size = source.size();
        let old = destination.current().map_err(|error| Error::ReadBack(error.into()))?;
        // What a file lacks at its end would have to be in the list, also after an interruption.
        if destination.can_resize() && old.virtual_size() != size {
            return Err(Error::BaseSize { size: old.virtual_size(), needed: size });
        }
        let extents = changes.extents().iter().map(|it| it.start.min(size)..it.end.min(size));
        let extents: Changes = extents.collect();
        destination.begin(Some(size), true)?;
        let old = (self.updates || self.zeros == Zeros::KeepIfZero).then_some(&old);
        let writer = Writer::new(&*destination, self.zeros, false, old, self.updates, progress);
        let gather = Slice::of_ranges(source, extents.extents().iter().cloned());
        let gather = gather.expect("extents of the source, in order");
        let placed = Placed { writer: &writer, gather: &gather };
        let pass = Pass::new(self.parameters).tee(&placed);
        let digests = pass.run(&gather, tuning, progress).map_err(Error::of_pass)?;
        let mut amounts = writer.amounts();
        amounts.equal += size - gather.size();
        let replaced = writer.replaced();
        let copied = Copied { replaced, ..Copied::new(digests, size, Some(amounts)) };
        Ok(Written { only: Some(extents), ..Written::end(copied, destination)? })
    }

    /// Copies all bytes of `reader`, which are read once and in order, like [`run`](Self::run). The destination is
    /// overwritten, and digests of blocks are not passed on.
    ///
    /// # Errors
    ///
    /// Fails like [`run`](Self::run).
    pub fn run_stream(
        self,
        reader: &mut dyn Read,
        destination: Box<dyn Destination>,
        tuning: &Tuning,
        writing: &Progress,
        reading: &Progress,
    ) -> Result<Copied, Error> {
        let (parameters, verify) = (self.parameters, self.verify);
        verify.check(parameters)?;
        let written = self.write_stream(reader, destination, tuning, writing)?;
        written.verified(verify, parameters, None, tuning, reading)
    }

    /// Copies like [`run_stream`](Self::run_stream), and reads nothing back.
    ///
    /// # Errors
    ///
    /// Fails like [`run`](Self::run).
    pub fn write_stream(
        self,
        reader: &mut dyn Read,
        mut destination: Box<dyn Destination>,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<Written, Error> {
        let is_blank = destination.begin(None, false)?;
        let writer = Writer::new(&*destination, self.zeros, is_blank, None, false, progress);
        let mut take = |at, bytes: &[u8]| writer.data(at, bytes);
        let (digests, size) = received(reader, &mut take, self.parameters, tuning, progress)?;
        let copied = Copied::new(digests, size, Some(writer.amounts()));
        drop(writer);
        Written::end(copied, destination)
    }
}

/// A tee for the rest of a source.
struct Shifted<'a> {
    writer: &'a Writer<'a>,
    from: u64,
}

impl Tee for Shifted<'_> {
    fn data(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        self.writer.data(self.from + offset, bytes)
    }

    fn zeros(&self, offset: u64, length: u64) -> Result<(), SinkError> {
        self.writer.zeros(self.from + offset, length)
    }
}

/// A tee for parts of a source.
struct Placed<'a> {
    writer: &'a Writer<'a>,
    gather: &'a Slice<&'a dyn Source>,
}

impl Tee for Placed<'_> {
    fn data(&self, mut offset: u64, mut bytes: &[u8]) -> Result<(), SinkError> {
        while !bytes.is_empty() {
            let (place, length) = self.gather.locate(offset, bytes.len() as u64);
            let (head, rest) = bytes.split_at(length as usize);
            self.writer.data(place, head)?;
            offset += length;
            bytes = rest;
        }
        Ok(())
    }

    fn zeros(&self, mut offset: u64, length: u64) -> Result<(), SinkError> {
        let end = offset + length;
        while offset < end {
            let (place, length) = self.gather.locate(offset, end - offset);
            self.writer.zeros(place, length)?;
            offset += length;
        }
        Ok(())
    }
}

/// A copy whose bytes are all where they stay, and that was not read back.
pub struct Written {
    copied: Copied,
    destination: Box<dyn Destination>,
    /// The extents that were copied, and that the checksums are of. `None` is all.
    only: Option<Changes>,
}

impl Written {
    pub(crate) fn end(copied: Copied, destination: Box<dyn Destination>) -> Result<Self, Error> {
        let failed = |source| Error::Destination { what: "cannot be completed", source };
        destination.end(copied.size).map_err(failed)?;
        Ok(Self { copied, destination, only: None })
    }

    /// Sets the checksums of the whole source, where only its rest was read: those that its map has.
    #[must_use]
    pub fn with_digests(self, digests: Vec<Digest>) -> Self {
        Self { copied: Copied { digests, ..self.copied }, ..self }
    }

    /// Returns the checksums of what was read from the source.
    pub fn digests(&self) -> &[Digest] {
        &self.copied.digests
    }

    /// Returns what was copied. The checksums are of what was read from the source, which may be a part.
    pub fn copied(&self) -> &Copied {
        &self.copied
    }

    /// Returns the result without a comparison.
    pub fn into_copied(self) -> Copied {
        match self.only {
            None => self.copied,
            Some(_) => Copied { digests: Vec::new(), ..self.copied },
        }
    }

    fn verified(
        self,
        verify: Verify,
        parameters: &[Parameters],
        again: Option<&dyn Source>,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<Copied, Error> {
        match verify {
            Verify::Source => Ok(self.into_copied()),
            Verify::ReadBack => {
                self.read_back(parameters, again, tuning, progress).map(|(copied, _)| copied)
            }
        }
    }

    /// Reads the destination back, and compares its checksums with the checksums of the source, which are the first of
    /// `parameters`. `again` is the source, if it can be read again, to tell where they differ. Returns also the content
    /// of the destination, which may be larger than the copy. Locks last until it is dropped.
    ///
    /// # Errors
    ///
    /// Fails if the destination cannot be read, with [`Error::Differs`] if it holds something else, and with
    /// [`Error::NoChecksum`] if the source has none.
    pub fn read_back(
        self,
        parameters: &[Parameters],
        again: Option<&dyn Source>,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<(Copied, Image), Error> {
        let Self { copied, destination, only } = self;
        let size = copied.size;
        match copied.amounts {
            // The source was not read.
            Some(Amounts { shared, .. }) if shared > 0 => Verify::ReadBack.check(parameters)?,
            _ if copied.digests.iter().all(|digest| digest.as_bytes().is_empty()) => {
                return Err(Error::NoChecksum);
            }
            _ => {}
        }
        let image = destination.read_back().map_err(|error| Error::ReadBack(error.into()))?;
        let shorter = || Error::Small { size: image.size(), needed: size };
        let copy = Slice::new(&image, 0, size).ok_or_else(shorter)?;
        let whole = blksum::checksums(&copy, parameters, tuning, progress);
        let whole = whole.map_err(Error::ReadBack)?;
        let is_equal = match &only {
            None => whole.starts_with(&copied.digests),
            Some(extents) => {
                let gather = Slice::of_ranges(&copy, extents.extents().iter().cloned());
                let gather = gather.expect("extents of the copy, in order");
                let found = blksum::checksums(&gather, parameters, tuning, progress);
                found.map_err(Error::ReadBack)? == copied.digests
            }
        };
        if !is_equal {
            let again = again.filter(|_| only.is_none());
            let at = again.and_then(|source| first_difference(source, &copy, tuning));
            return Err(Error::Differs { at });
        }
        let read_back = image.chain().iter().flat_map(blkimage::Member::files).next();
        let read_back = read_back.map(blkimage::MemberFile::read_method);
        let destination_size = Some(image.size());
        Ok((Copied { digests: whole, read_back, destination_size, ..copied }, image))
    }
}

/// Looks for the first extent that differs, as a help for the user.
fn first_difference(source: &dyn Source, copy: &dyn Source, tuning: &Tuning) -> Option<(u64, u64)> {
    let progress = Progress::new();
    let mut first = None;
    let mut take = |found: blksum::Difference| {
        if first.is_none() {
            first = Some((found.offset, found.length));
            progress.cancel();
        }
    };
    // It was found if this is cancelled.
    let _ = blksum::differences(source, copy, BlockSize::DEFAULT, &mut take, tuning, &progress);
    first
}
