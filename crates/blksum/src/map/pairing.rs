//! Compares an image, or a partition of it, with a map.

use std::ops::Range;

use blkhash::Comparison;
use blkimage::{Slice, Source, partition};
use blkmap::{Against, ImageEnd, Map, Report, Side};

use super::{Info, OtherPart, of_map, offset_of_page, padded_last};
use crate::differences::{Difference, collect};
use crate::selected::Selected;
use crate::sides::Sides;
use crate::unreadable::{Places, ReadAround, Unreadable};
use crate::{Error, Progress, Tuning, block_digests};

/// Passes everything that differs from the map to `found`, in order and in the longest possible extents, with blocks
/// that only one side has. Returns why blocks could not be read, the first place for each of some reasons.
///
/// The map is the left side. If it is of the whole image, and the selected part is a partition, the blocks of the
/// partition are compared.
///
/// # Errors
///
/// Fails with [`Error::OtherPart`] if the map is of another part of the image. Fails like
/// [`block_digests`](crate::block_digests()), and with [`Error::Map`] if the map cannot be read.
pub fn verify(
    map: &Map,
    image: &Selected,
    found: &mut (dyn FnMut(Difference) + Send),
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Vec<Unreadable>, Error> {
    let pairing = Pairing::new(map, image)?;
    collect(pairing.sides(), found, |report| pairing.compare(report, tuning, progress))
}

/// Passes everything in which two maps differ to `found`, like [`verify`].
///
/// # Errors
///
/// Fails with [`Error::OtherPart`] if one is the map of a partition and the other one of a whole image. Fails with
/// [`Error::Map`] if a map cannot be read, or the two have other digests, block sizes or salts.
pub fn diff(
    left: &Map,
    right: &Map,
    found: &mut (dyn FnMut(Difference) + Send),
) -> Result<(), Error> {
    check_parts(left, right)?;
    let size = |map: &Map| map.commit().image_size();
    let sides = Sides::new(left.header().block_size, size(left), size(right));
    collect(sides, found, |report| Ok(blkmap::diff(left, right, report)?))
}

/// Checks that not one map is of a partition, and the other one of a whole image.
///
/// # Errors
///
/// Fails with [`OtherPart::Maps`] then.
pub fn check_parts(left: &Map, right: &Map) -> Result<(), OtherPart> {
    let part = |map| Info::of(map).and_then(|info| info.partition());
    match (part(left), part(right)) {
        (Some(one), Some(other))
            if one.is_some() != other.is_some()
                && left.commit().image_size() != right.commit().image_size() =>
        {
            Err(OtherPart::Maps(one, other))
        }
        _ => Ok(()),
    }
}

/// A map, and the image or the part of it that is compared with the map.
pub struct Pairing<'a> {
    map: &'a Map,
    image: &'a Selected,
    side: Side,
    pages: Range<u64>,
    info: Option<Info>,
    partition: Option<PartitionBlocks>,
}

impl<'a> Pairing<'a> {
    /// Pairs a map, on the left side, with a part of an image.
    ///
    /// # Errors
    ///
    /// Fails if the map is of another part.
    pub fn new(map: &'a Map, image: &'a Selected) -> Result<Self, OtherPart> {
        let info = Info::of(map);
        let partition = PartitionBlocks::find(map, info.as_ref(), image)?;
        let pages = partition.map_or(0..map.pages(), |it| it.pages(map));
        Ok(Self { map, image, side: Side::Left, pages, info, partition })
    }

    /// Makes the map this side.
    #[must_use]
    pub fn with_side(self, side: Side) -> Self {
        Self { side, ..self }
    }

    /// Compares these pages of the map only. Returns `None` if the map is compared with a partition of its image.
    #[must_use]
    pub fn with_pages(self, pages: Range<u64>) -> Option<Self> {
        self.partition.is_none().then_some(Self { pages, ..self })
    }

    /// Returns the info of the map, like [`Info::of`].
    pub fn info(&self) -> Option<&Info> {
        self.info.as_ref()
    }

    /// Returns whether the image is a partition, and the map is of the whole image. Blocks are counted from the
    /// start of the partition.
    pub fn is_in_map(&self) -> bool {
        self.partition.is_some()
    }

    /// Returns the sizes of both sides.
    pub fn sides(&self) -> Sides {
        let header = self.map.header();
        if let Some(PartitionBlocks { length, .. }) = self.partition {
            return Sides::new(header.block_size, length, length);
        }
        let (map, image) = (self.map.commit().image_size(), self.image.size());
        let (left, right) = if self.side == Side::Left { (map, image) } else { (image, map) };
        let mut sides = Sides::new(header.block_size, left, right);
        let all = self.map.pages();
        if self.pages != (0..all) {
            let at = |page| offset_of_page(header, page, u64::MAX);
            // The last part includes what the image has past the end of the map.
            let end = if self.pages.end == all { u64::MAX } else { at(self.pages.end) };
            sides.part = Some((at(self.pages.start), end));
        }
        sides
    }

    /// Returns how many bytes of the image are compared.
    pub fn length(&self) -> u64 {
        let size = match self.partition {
            None => self.image.size(),
            Some(_) => self.image.image().size(),
        };
        let (from, to) = self.range(size);
        to - from
    }

    /// Returns the bytes of a source of this size that are compared. Blocks past the end of the map are not.
    fn range(&self, size: u64) -> (u64, u64) {
        let header = self.map.header();
        let end = self.map.commit().blocks().saturating_mul(header.block_size.into()).min(size);
        let at = |page| offset_of_page(header, page, end);
        (at(self.pages.start), at(self.pages.end))
    }

    /// Compares the blocks that both sides have. Zeros that the image does not store cost nothing, so that
    /// [`Tuning::max_zeros`] is only a limit if it is set.
    ///
    /// Blocks that cannot be read are [`Comparison::Unreadable`], and the comparison continues after them. Returns the
    /// first place for each of some reasons. Reads that fail may take ten minutes, or as long as all others if that is
    /// more.
    ///
    /// # Errors
    ///
    /// Fails like [`block_digests`](crate::block_digests()), and with [`Error::Map`] if the map cannot be read, but not for
    /// an error that is only about some of the bytes ([`blkimage::Error::is_of_bytes`]).
    pub fn compare(
        &self,
        mut report: Report<'_>,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<Vec<Unreadable>, Error> {
        let block_size = self.map.header().block_size.into();
        let Some(partition) = self.partition else {
            let places = Places::new(block_size, 0..u64::MAX, progress);
            self.compare_pages(self.image.source(), &places, &mut report, tuning, progress)?;
            return Ok(places.into_reasons());
        };
        let (start, length) = (self.image.offset(), self.image.size());
        let places = Places::new(block_size, start..start + length, progress);
        let mut clip = |first, count, kind| partition.clip(first, count, kind, &mut report);
        let mut whole = Report::new(&mut clip);
        self.compare_pages(&**self.image.image(), &places, &mut whole, tuning, progress)?;
        report.end();
        let mut reasons = places.into_reasons();
        reasons.iter_mut().for_each(|reason| reason.offset -= start);
        Ok(reasons)
    }

    fn compare_pages(
        &self,
        source: &dyn Source,
        places: &Places<'_>,
        report: &mut Report<'_>,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<(), Error> {
        let header = self.map.header();
        let leaf = header.leaf();
        let is_left = self.side == Side::Right;
        let source = &ReadAround::new(source, places, is_left);
        let padded_last = padded_last(source, &leaf, header.block_size)?;
        let size = source.size();
        let (from, to) = self.range(size);
        let part = Slice::new(source, from, to - from).expect("a part of the image");
        let blocks = self.map.blocks_of(self.pages.clone())?;
        let end = ImageEnd { size, padded_last };
        let mut pass_on = |first, count, kind| report.push(first, count, kind);
        let mut find = |blocks| places.take(blocks);
        let checked = Report::new(&mut pass_on).with_unreadable(&mut find);
        let mut against = Against::new(self.map, self.side, blocks, end, checked);
        let tuning = tuning.with_default_limit(u64::MAX);
        block_digests(&part, &leaf, &mut against, &tuning, progress)
            .map_err(|error| places.of_pass(of_map(error)))?;
        against.end();
        report.end();
        Ok(())
    }
}

/// Blocks of a partition in the map of the whole image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PartitionBlocks {
    /// Index of the first block.
    first: u64,
    /// Length of the partition in bytes.
    length: u64,
    block_size: u64,
}

impl PartitionBlocks {
    /// Finds the blocks of a partition. Returns `None` if the map and the image are compared from the first block on.
    fn find(map: &Map, info: Option<&Info>, image: &Selected) -> Result<Option<Self>, OtherPart> {
        // The map of a partition can be of a device or a file with its content.
        if map.commit().image_size() == image.size() {
            return Ok(None);
        }
        match (info.and_then(Info::partition), image.partition()) {
            (Some(None), Some(number)) => {
                let partitions = info.map(Info::partitions).unwrap_or_default();
                Self::of_partition(map, &partitions, image, number).map(Some)
            }
            (None, Some(number)) if map.commit().image_size() == image.image().size() => {
                Err(OtherPart::WholeImage(number))
            }
            (Some(Some(number)), None) if partition::find(image.source(), number).is_ok() => {
                Err(OtherPart::Partition(number))
            }
            _ => Ok(None),
        }
    }

    fn of_partition(
        map: &Map,
        partitions: &[partition::Partition],
        image: &Selected,
        number: u32,
    ) -> Result<Self, OtherPart> {
        let block_size = u64::from(map.header().block_size);
        let found = (image.offset(), image.size());
        let mapped = partitions.iter().find(|it| it.number == number);
        let mapped = mapped.ok_or(OtherPart::Missing(number))?;
        let mapped = (mapped.offset, mapped.length);
        if mapped != found {
            return Err(OtherPart::Moved { number, mapped, found });
        }
        let (offset, length) = found;
        if !offset.is_multiple_of(block_size) {
            return Err(OtherPart::Unaligned { number, offset, block_size });
        }
        let blocks = Self { first: offset / block_size, length, block_size };
        if blocks.end() > map.commit().blocks() {
            return Err(OtherPart::Ends(number));
        }
        Ok(blocks)
    }

    /// Returns the index of the block after the last one.
    fn end(self) -> u64 {
        self.first + self.length.div_ceil(self.block_size)
    }

    /// Returns the pages with blocks of the partition.
    fn pages(self, map: &Map) -> Range<u64> {
        let blocks = map.header().blocks_per_page();
        self.first / blocks..self.end().div_ceil(blocks)
    }

    /// Passes on blocks of the partition, counted from its start.
    fn clip(self, first: u64, count: u64, kind: Comparison, report: &mut Report<'_>) {
        let (from, to) = (first.max(self.first), (first + count).min(self.end()));
        if from >= to {
            return;
        }
        let (from, to) = (from - self.first, to - self.first);
        // The last block may reach past the partition, and what differs may be after it.
        let whole = self.length / self.block_size;
        let is_equal = matches!(kind, Comparison::Equal | Comparison::Zeros);
        let known = if is_equal { to } else { to.min(whole).max(from) };
        report.push(from, known - from, kind);
        report.push(known, to - known, Comparison::Unknown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_partition() {
        let part = PartitionBlocks { first: 10, length: 4 * 512 + 1, block_size: 512 };
        let clipped = |first, count, kind| {
            let mut runs = Vec::new();
            let mut take = |first, count, kind| runs.push((first, count, kind));
            let mut report = Report::new(&mut take);
            part.clip(first, count, kind, &mut report);
            report.end();
            runs
        };
        use Comparison::{Changed, Equal, Unknown};
        assert_eq!(clipped(0, 10, Changed), []);
        assert_eq!(clipped(15, 10, Changed), []);
        assert_eq!(clipped(0, 100, Equal), [(0, 5, Equal)]);
        assert_eq!(clipped(0, 100, Changed), [(0, 4, Changed), (4, 1, Unknown)]);
        assert_eq!(clipped(12, 1, Changed), [(2, 1, Changed)]);
        assert_eq!(clipped(14, 1, Changed), [(4, 1, Unknown)]);
    }
}
