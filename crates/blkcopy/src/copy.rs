//! The copy of an image, from its source to the verdict.

use std::io::Read;
use std::sync::atomic::Ordering::Relaxed;

use blkhash::{BlockDigests, BlockSize, Digest, Leaf, Parameters, Sink};
use blkimage::{ReadMethod, Slice, Source};
use blksum::{Pass, Progress, Tee, Tuning};

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
    /// Nothing: the checksums are those of what was read from the source.
    Source,
}

/// A copy of an image.
pub struct Copy<'a> {
    parameters: &'a [Parameters],
    blocks: Option<(&'a Leaf, &'a mut (dyn Sink<BlockDigests> + Send))>,
    zeros: Zeros,
    updates: bool,
    verify: Verify,
}

/// The result of a copy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Copied {
    /// The checksums, in the order of their parameters.
    pub digests: Vec<Digest>,
    /// Number of bytes of the content.
    pub size: u64,
    /// Number of bytes that were written.
    pub written: u64,
    /// Number of bytes that became or stayed zero without being written.
    pub zeroed: u64,
    /// Number of bytes that the destination had already.
    pub equal: u64,
    /// The way in which the destination was read back. `None` if it was not.
    pub read_back: Option<ReadMethod>,
}

impl<'a> Copy<'a> {
    /// Begins with the checksums to compute.
    pub fn new(parameters: &'a [Parameters]) -> Self {
        let (zeros, verify) = (Zeros::default(), Verify::default());
        Self { parameters, blocks: None, zeros, updates: false, verify }
    }

    /// Passes the digests of all blocks that are read from the source to `sink`, in order. `leaf` defines them.
    #[must_use]
    pub fn blocks(self, leaf: &'a Leaf, sink: &'a mut (dyn Sink<BlockDigests> + Send)) -> Self {
        Self { blocks: Some((leaf, sink)), ..self }
    }

    /// Sets what becomes of zeros.
    #[must_use]
    pub fn zeros(self, zeros: Zeros) -> Self {
        Self { zeros, ..self }
    }

    /// Reads the destination, and writes only what differs.
    #[must_use]
    pub fn update(self, updates: bool) -> Self {
        Self { updates, ..self }
    }

    /// Sets what is compared afterwards.
    #[must_use]
    pub fn verify(self, verify: Verify) -> Self {
        Self { verify, ..self }
    }

    /// Copies `source` to the start of `destination`. What a larger device or export holds behind it stays.
    ///
    /// Runs on the caller's thread and others, like [`blksum::checksum`]. Memory use does not depend on the size.
    ///
    /// # Errors
    ///
    /// Fails if the source cannot be read or changed meanwhile, if the destination is smaller, or cannot be written or read,
    /// and with [`Error::Differs`] if it holds something else afterwards.
    pub fn run(
        self,
        source: &dyn Source,
        mut destination: Box<dyn Destination>,
        tuning: &Tuning,
        writing: &Progress,
        reading: &Progress,
    ) -> Result<Copied, Error> {
        let (size, parameters) = (source.size(), self.parameters);
        let keeps = self.updates || self.zeros == Zeros::KeepIfZero;
        let is_blank = destination.begin(Some(size), keeps)?;
        let old = (keeps && !is_blank).then(|| destination.current()).transpose();
        let old = old.map_err(|error| Error::ReadBack(error.into()))?;
        let writer = Writer::new(&*destination, self.zeros, is_blank, old.as_ref(), self.updates);
        let mut pass = Pass::new(parameters).tee(&writer);
        if let Some((leaf, sink)) = self.blocks {
            pass = pass.blocks(leaf, sink);
        }
        let tuning = tuning.with_default_limit(u64::MAX);
        let digests = pass.run(source, &tuning, writing).map_err(Error::of_pass)?;
        let copied = Copied::new(digests, size, &writer);
        drop(writer);
        drop(old);
        let again = Some(source);
        End { parameters, verify: self.verify, again }.of(copied, destination, &tuning, reading)
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
        mut destination: Box<dyn Destination>,
        tuning: &Tuning,
        writing: &Progress,
        reading: &Progress,
    ) -> Result<Copied, Error> {
        let parameters = self.parameters;
        let is_blank = destination.begin(None, false)?;
        let writer = Writer::new(&*destination, self.zeros, is_blank, None, false);
        let (digests, size) =
            received(reader, &mut |at, bytes| writer.data(at, bytes), parameters, tuning, writing)?;
        let copied = Copied::new(digests, size, &writer);
        drop(writer);
        End { parameters, verify: self.verify, again: None }.of(
            copied,
            destination,
            tuning,
            reading,
        )
    }
}

impl Copied {
    fn new(digests: Vec<Digest>, size: u64, writer: &Writer<'_>) -> Self {
        let counts = [&writer.written, &writer.zeroed, &writer.equal];
        let [written, zeroed, equal] = counts.map(|count| count.load(Relaxed));
        Self { digests, size, written, zeroed, equal, read_back: None }
    }
}

/// The end of a copy.
struct End<'a> {
    parameters: &'a [Parameters],
    verify: Verify,
    /// The source, if it can be read again.
    again: Option<&'a dyn Source>,
}

impl End<'_> {
    /// Completes the destination, and compares it with what was read from the source.
    fn of(
        self,
        copied: Copied,
        destination: Box<dyn Destination>,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<Copied, Error> {
        let size = copied.size;
        let failed = |source| Error::Destination { what: "cannot be completed", source };
        destination.end(size).map_err(failed)?;
        if self.verify != Verify::ReadBack {
            return Ok(copied);
        }
        let image = destination.read_back().map_err(|error| Error::ReadBack(error.into()))?;
        let shorter = || Error::Small { size: image.size(), needed: size };
        let copy = Slice::new(&image, 0, size).ok_or_else(shorter)?;
        let found = blksum::checksums(&copy, self.parameters, tuning, progress);
        if found.map_err(Error::ReadBack)? != copied.digests {
            let at = self.again.and_then(|source| first_difference(source, &copy, tuning));
            return Err(Error::Differs { at });
        }
        let mut files = image.chain().iter().flat_map(blkimage::Member::files);
        Ok(Copied { read_back: files.next().map(blkimage::MemberFile::read_method), ..copied })
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
