//! Checks an image against the CRC-32 checksums that it states of parts of its content and of its file, as `hdiutil verify` does.
//!
//! Threads compute those of pieces, which are combined in order.

use std::iter;
use std::ops::Range;

use blkimage::{ExtentKind, Source, StatedSum, SumOf};
use crc_fast::{CrcAlgorithm, checksum, checksum_combine};

use crate::{Error, Progress, Tuning, in_order};

/// Computes the CRC-32 of everything that an image states one of, in the order of `sums`.
///
/// `content` is the image, and `file` has the bytes of its file.
///
/// # Errors
///
/// Fails if the image cannot be read, changed, or has more zeros than [`Tuning::max_zeros`] allows, or if
/// [`Progress::cancel`] was called. A difference is no error.
pub fn check_sums(
    content: &dyn Source,
    file: &dyn Source,
    sums: &[StatedSum],
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Vec<u32>, Error> {
    let (mut found, mut parts) = (vec![0; sums.len()], Vec::new());
    for (sum, stated) in sums.iter().enumerate() {
        let mut add =
            |source, range: &Range<u64>| parts.push(Part { sum, source, range: range.clone() });
        match &stated.of {
            SumOf::Content { ranges, .. } => ranges.iter().for_each(|range| add(content, range)),
            SumOf::File(range) => add(file, range),
            SumOf::Sums(bytes) => found[sum] = crc32(bytes),
        }
    }
    let step = tuning.clamped_read_size() as u64;
    progress.set_total(parts.iter().map(|part| part.range.end - part.range.start).sum());
    let pieces = parts.iter().flat_map(|part| {
        let mut rest = part.range.clone();
        iter::from_fn(move || {
            let range = rest.start..rest.end.min(rest.start - rest.start % step + step);
            rest.start = range.end;
            (!range.is_empty()).then_some(Part { range, ..*part })
        })
    });
    let mut zeros = 0;
    let read = |piece: &Part<'_>| piece.read(progress);
    in_order(
        tuning.threads,
        pieces,
        |piece| Some(read(piece)),
        |piece, early| {
            let Piece { crc, zeros: more } = early.unwrap_or_else(|| read(&piece))?;
            zeros += more;
            if let Some(limit) = tuning.max_zeros
                && zeros > limit
            {
                return Err(Error::Zeros { limit });
            }
            let length = piece.range.end - piece.range.start;
            let before = u64::from(found[piece.sum]);
            found[piece.sum] = checksum_combine(CRC32, before, crc.into(), length) as u32;
            Ok(())
        },
    )?;
    content.check_unchanged()?;
    file.check_unchanged()?;
    Ok(found)
}

/// Bytes that a checksum is of.
struct Part<'a> {
    /// The index of the checksum.
    sum: usize,
    source: &'a dyn Source,
    range: Range<u64>,
}

/// A piece that was read.
struct Piece {
    crc: u32,
    /// Number of zero bytes that are not stored.
    zeros: u64,
}

impl Part<'_> {
    fn read(&self, progress: &Progress) -> Result<Piece, Error> {
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let Range { start, end } = self.range;
        let mut buf = vec![0; (end - start) as usize];
        let (mut offset, mut zeros) = (start, 0);
        while offset < end {
            let limit = end - offset;
            let extent = self.source.extent(offset, limit)?;
            let length = extent.length;
            if length == 0 || length > limit {
                return Err(Error::Extent { offset, length, limit });
            }
            match extent.kind {
                ExtentKind::Data => {
                    let at = (offset - start) as usize;
                    self.source.read_exact_at(&mut buf[at..at + length as usize], offset)?;
                    progress.advance(length, length);
                }
                ExtentKind::Zero => {
                    zeros += length;
                    progress.advance(length, 0);
                }
            }
            offset += length;
        }
        Ok(Piece { crc: crc32(&buf), zeros })
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    checksum(CRC32, bytes) as u32
}

const CRC32: CrcAlgorithm = CrcAlgorithm::Crc32IsoHdlc;
