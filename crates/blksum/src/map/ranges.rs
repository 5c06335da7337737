//! Compares an image with checksums of ranges of its blocks, such as a bmap has.
//!
//! Ranges are hashed as they are, without blocks. Several short ones are read side by side, and all threads work on a long one.

use std::ops::Range;

use blkhash::{Algorithm, BlockSize, Comparison, Construction, Digest, Digester, Parameters};
use blkimage::{ExtentKind, Slice, Source};
use blkmap::{DigestedRange, Report};

use super::OtherPart;
use crate::differences::{Difference, collect};
use crate::lane::MAX_LINEAR_ZEROS;
use crate::selected::Selected;
use crate::sides::Sides;
use crate::unreadable::{Places, ReadAround, Unreadable};
use crate::{Error, Progress, Tuning, checksum, in_order};

/// What digests of ranges are of, and the image that is compared with them.
pub struct RangePairing<'a> {
    parameters: Parameters,
    size: u64,
    image: &'a Selected,
}

impl<'a> RangePairing<'a> {
    /// Pairs ranges of an image of `size` bytes, on the left side, with a part of an image.
    ///
    /// # Errors
    ///
    /// Fails if the part is a partition, and the ranges cover the whole image. Fails if the algorithm needs a key.
    pub fn new(
        algorithm: Algorithm,
        block_size: BlockSize,
        size: u64,
        image: &'a Selected,
    ) -> Result<Self, Error> {
        match image.partition() {
            Some(number) if size != image.size() && size == image.image().size() => {
                return Err(OtherPart::WholeImage(number).into());
            }
            _ => {}
        }
        let parameters = Parameters::new(algorithm, Construction::Linear, block_size)?;
        Ok(Self { parameters, size, image })
    }

    /// Returns the sizes of both sides.
    pub fn sides(&self) -> Sides {
        Sides::new(self.parameters.block_size(), self.size, self.image.size())
    }

    /// Passes everything that differs from the ranges to `found`, like [`verify`](super::verify), with the blocks in no range.
    ///
    /// # Errors
    ///
    /// Fails like [`compare`](Self::compare).
    pub fn differences(
        &self,
        ranges: impl Iterator<Item = Result<DigestedRange, blkmap::Error>> + Send,
        found: &mut (dyn FnMut(Difference) + Send),
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<Vec<Unreadable>, Error> {
        collect(self.sides(), found, |report| self.compare(ranges, report, tuning, progress))
    }

    /// Compares ranges, which come in order and do not overlap. Blocks between them, and blocks of a range that ends past the
    /// image, are [`Comparison::Unknown`]. If the digest of a range is another one, all of its blocks are
    /// [`Comparison::Changed`].
    ///
    /// Blocks that cannot be read are [`Comparison::Unreadable`], the others of their range are unknown, and the comparison
    /// continues after them. Returns the first place for each of some reasons, like [`Pairing::compare`](super::Pairing::compare).
    ///
    /// # Errors
    ///
    /// Fails like [`checksum`](crate::checksum()), with the first error of `ranges`, and if a range is out of order or past
    /// the end, but not for an error that is only about some of the bytes ([`blkimage::Error::is_of_bytes`]).
    pub fn compare(
        &self,
        ranges: impl Iterator<Item = Result<DigestedRange, blkmap::Error>> + Send,
        mut report: Report<'_>,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<Vec<Unreadable>, Error> {
        let block_size = u64::from(self.parameters.block_size());
        let places = Places::new(block_size, 0..u64::MAX, progress);
        let source = &ReadAround::new(self.image.source(), &places, false);
        let reader = RangeReader {
            source,
            parameters: self.parameters,
            digester: tuning.digester(self.parameters.algorithm())?,
            size: self.size,
            tuning,
            progress,
        };
        let mut verdicts =
            Verdicts { report: &mut report, places: &places, next: 0, end: self.sides().common() };
        let blocks = self.size.div_ceil(block_size);
        let mut zeros_left = tuning.max_zeros.unwrap_or(MAX_LINEAR_ZEROS);
        let ranges = ranges.scan(0, |next, range| Some(in_place(range, next, blocks)));
        let threads = tuning.threads.max(source.queue_depth());
        in_order(
            threads,
            ranges,
            |range| range.as_ref().ok().and_then(|range| reader.ahead(range)),
            |range, hashed| {
                let range = range?;
                let hashed = match hashed {
                    Some(hashed) => hashed?,
                    None => reader.in_turn(&range, &mut zeros_left)?,
                };
                verdicts.range(&range, hashed);
                Ok(())
            },
        )
        .map_err(|error| places.of_pass(error))?;
        verdicts.end();
        source.check_unchanged()?;
        Ok(places.into_reasons())
    }
}

/// Checks that a range starts after the earlier ones, which end at `next`, and ends before the end.
fn in_place(
    range: Result<DigestedRange, blkmap::Error>,
    next: &mut u64,
    blocks: u64,
) -> Result<DigestedRange, Error> {
    let range = range?;
    let end = range.first.checked_add(range.count).filter(|end| *end <= blocks);
    match end {
        Some(end) if range.first >= *next => {
            *next = end;
            Ok(range)
        }
        _ => {
            let reason = format!("the range from block {} on is out of place", range.first);
            Err(blkmap::Error::Content(reason).into())
        }
    }
}

/// Reads and hashes ranges.
struct RangeReader<'a> {
    source: &'a ReadAround<'a>,
    parameters: Parameters,
    digester: Digester,
    /// Size of the image that the digests are of.
    size: u64,
    tuning: &'a Tuning,
    progress: &'a Progress,
}

impl RangeReader<'_> {
    /// Returns the bytes of a range, if the image has them all.
    fn bytes(&self, range: &DigestedRange) -> Option<Range<u64>> {
        let block_size = u64::from(self.parameters.block_size());
        let at = |block: u64| block.saturating_mul(block_size).min(self.size);
        let bytes = at(range.first)..at(range.first.saturating_add(range.count));
        (bytes.end <= self.source.size()).then_some(bytes)
    }

    /// Returns the digest of a short range of data.
    fn ahead(&self, range: &DigestedRange) -> Option<Result<Option<Digest>, Error>> {
        let bytes = self.bytes(range)?;
        let length = bytes.end - bytes.start;
        // Zeros that are not stored are limited, and are counted in turn.
        let is_data = |bytes: &Range<u64>| match self.source.extent(bytes.start, length) {
            Ok(extent) => extent.kind == ExtentKind::Data || extent.length < length,
            Err(_) => false,
        };
        let is_short = length <= self.tuning.clamped_read_size() as u64;
        (is_short && is_data(&bytes)).then(|| self.read(bytes).map(Some))
    }

    fn read(&self, bytes: Range<u64>) -> Result<Digest, Error> {
        if self.progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let length = bytes.end - bytes.start;
        let mut content = vec![0; length as usize];
        self.source.read_exact_at(&mut content, bytes.start)?;
        let mut state = self.digester.start();
        state.update(&content);
        self.progress.advance(length, length);
        Ok(state.finalize())
    }

    /// Returns the digest of any range, or `None` if the image ends before. Subtracts the zeros that are not stored.
    fn in_turn(
        &self,
        range: &DigestedRange,
        zeros_left: &mut u64,
    ) -> Result<Option<Digest>, Error> {
        let Some(bytes) = self.bytes(range) else { return Ok(None) };
        let length = bytes.end - bytes.start;
        let part = Slice::new(self.source, bytes.start, length).expect("a part of the image");
        let tuning = self.tuning.with_max_zeros(Some(*zeros_left));
        let before = self.zeros();
        let digest = checksum(&part, &self.parameters, &tuning, self.progress);
        *zeros_left = zeros_left.saturating_sub(self.zeros() - before);
        digest.map(Some).map_err(|error| match error {
            Error::Zeros { .. } => {
                Error::Zeros { limit: self.tuning.max_zeros.unwrap_or(MAX_LINEAR_ZEROS) }
            }
            error => error,
        })
    }

    /// Returns the number of zeros so far that are not stored.
    fn zeros(&self) -> u64 {
        self.progress.done().saturating_sub(self.progress.data())
    }
}

/// Reports blocks in order.
struct Verdicts<'a, 'r, 'p> {
    report: &'a mut Report<'r>,
    places: &'a Places<'p>,
    /// Index of the first block that was not reported.
    next: u64,
    /// Index after the last block that both sides have.
    end: u64,
}

impl Verdicts<'_, '_, '_> {
    /// Reports a range whose content has the digest `found`, and what lies before it.
    fn range(&mut self, range: &DigestedRange, found: Option<Digest>) {
        let end = range.first + range.count;
        self.up_to(range.first, Comparison::Unknown);
        let mut is_read = found.is_some();
        while let Some(unread) = self.places.take(self.next..end) {
            self.up_to(unread.start, Comparison::Unknown);
            self.up_to(unread.end, Comparison::Unreadable);
            is_read = false;
        }
        let verdict = match is_read {
            true if found == Some(range.digest) => Comparison::Equal,
            true => Comparison::Changed,
            false => Comparison::Unknown,
        };
        self.up_to(end, verdict);
    }

    fn up_to(&mut self, end: u64, kind: Comparison) {
        let end = end.min(self.end);
        if end > self.next {
            self.report.push(self.next, end - self.next, kind);
            self.next = end;
        }
    }

    fn end(&mut self) {
        self.up_to(self.end, Comparison::Unknown);
        self.report.end();
    }
}
