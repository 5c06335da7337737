//! Ranges of a source.

use std::ops::Range;

use crate::{Dirty, Error, ErrorKind, Extent, Lent, Origin, Result, Source, VolumeId};

/// A range of a source as a source of its own, for example a partition of a disk, or several ranges, one after the other, for
/// example the blocks of an image that changed.
#[derive(Clone, Debug)]
pub struct Slice<S> {
    source: S,
    /// For each range, its offset here and in the source. Sorted by the former.
    pieces: Vec<(u64, u64)>,
    size: u64,
    /// The largest power of two that all ranges are aligned to.
    alignment: u64,
}

impl<S: Source> Slice<S> {
    /// Returns a slice of `length` bytes from `offset` on, shorter if the source ends earlier. Returns
    /// `None` if `offset` is past the end of the source.
    pub fn new(source: S, offset: u64, length: u64) -> Option<Self> {
        let size = source.size().checked_sub(offset)?.min(length);
        let alignment = 1 << offset.trailing_zeros().min(63);
        Some(Self { source, pieces: vec![(0, offset)], size, alignment })
    }

    /// Returns a slice of `ranges`, which are sorted, do not overlap, and are not empty. Returns `None` if they are not, or if
    /// one ends past the end of the source.
    pub fn of_ranges(source: S, ranges: impl IntoIterator<Item = Range<u64>>) -> Option<Self> {
        let (mut end, mut is_sorted) = (0, true);
        let ranges = ranges.into_iter().inspect(|range| {
            is_sorted &= range.start >= end;
            end = range.end;
        });
        let slice = Self::joined(source, ranges)?;
        is_sorted.then_some(slice)
    }

    /// Returns a slice of `ranges` in this order, which need not be the order of the source, as of a logical volume.
    /// Returns `None` if one is empty, or ends past the end of the source.
    pub fn joined(source: S, ranges: impl IntoIterator<Item = Range<u64>>) -> Option<Self> {
        let (mut pieces, mut size, mut bits) = (Vec::new(), 0_u64, 0);
        for range in ranges {
            if range.is_empty() || range.end > source.size() {
                return None;
            }
            bits |= size | range.start;
            pieces.push((size, range.start));
            size = size.checked_add(range.end - range.start)?;
        }
        let alignment = 1 << bits.trailing_zeros().min(63);
        Some(Self { source, pieces, size, alignment })
    }

    /// Returns where the byte at `offset` is in the source, and how many bytes of its range follow from there on, at
    /// most `limit`. The offset is not past the end.
    pub fn locate(&self, offset: u64, limit: u64) -> (u64, u64) {
        let index = self.pieces.partition_point(|(start, _)| *start <= offset) - 1;
        let (start, place) = self.pieces[index];
        let end = self.pieces.get(index + 1).map_or(self.size, |(next, _)| *next);
        (place + (offset - start), end.saturating_sub(offset).min(limit))
    }

    fn check(&self, offset: u64, length: u64) -> Result<()> {
        if offset.checked_add(length).is_some_and(|end| end <= self.size) {
            return Ok(());
        }
        let reason = format!("{length} bytes asked for past the end of a part of {}", self.size);
        Err(Error::new(ErrorKind::Argument, "", reason).at(offset))
    }
}

impl<S: Source> Source for Slice<S> {
    fn size(&self) -> u64 {
        self.size
    }

    fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
        self.check(offset, 1)?;
        let (place, limit) = self.locate(offset, limit);
        let extent = self.source.extent(place, limit)?;
        Ok(Extent { offset, ..extent })
    }

    fn origin(&self, offset: u64, limit: u64) -> Result<Origin> {
        self.check(offset, 1)?;
        let (place, limit) = self.locate(offset, limit);
        let origin = self.source.origin(place, limit)?;
        Ok(Origin { offset, ..origin })
    }

    fn volumes(&self) -> Vec<VolumeId> {
        self.source.volumes()
    }

    fn volume_origins(&self, offset: u64, limit: u64, dirty: Dirty) -> Result<Vec<Origin>> {
        self.check(offset, 1)?;
        let (place, limit) = self.locate(offset, limit);
        let mut origins = self.source.volume_origins(place, limit, dirty)?;
        origins.iter_mut().for_each(|origin| origin.offset = offset + (origin.offset - place));
        Ok(origins)
    }

    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> Result<()> {
        self.check(offset, buf.len() as u64)?;
        while !buf.is_empty() {
            let (place, length) = self.locate(offset, buf.len() as u64);
            let (head, rest) = buf.split_at_mut(length as usize);
            self.source.read_exact_at(head, place)?;
            offset += length;
            buf = rest;
        }
        Ok(())
    }

    fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        self.check(offset, length as u64).ok().filter(|()| length > 0)?;
        let (place, length) = self.locate(offset, length as u64);
        self.source.lend(place, length as usize)
    }

    /// Returns the granularity of the source, reduced to the alignment of the ranges.
    fn granularity(&self) -> u64 {
        self.source.granularity().min(self.alignment)
    }

    fn queue_depth(&self) -> usize {
        self.source.queue_depth()
    }

    fn will_need(&self, mut offset: u64, length: u64) {
        let end = offset.saturating_add(length).min(self.size);
        while offset < end {
            let (place, length) = self.locate(offset, end - offset);
            self.source.will_need(place, length);
            offset += length;
        }
    }

    fn read_ahead(&self) -> u64 {
        self.source.read_ahead()
    }

    fn check_unchanged(&self) -> Result<()> {
        self.source.check_unchanged()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{ExtentKind, Memory, OpenOptions, OriginKind};

    /// A source that overrides every default method.
    struct Far;

    impl Source for Far {
        fn size(&self) -> u64 {
            1 << 20
        }

        fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
            Ok(Extent { offset, length: limit.min(3), kind: ExtentKind::Data })
        }

        fn origin(&self, offset: u64, limit: u64) -> Result<Origin> {
            Ok(Origin { offset, length: limit.min(5), kind: OriginKind::Zero })
        }

        fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
            buf.iter_mut().zip(offset..).for_each(|(byte, offset)| *byte = offset as u8);
            Ok(())
        }

        fn granularity(&self) -> u64 {
            1 << 16
        }

        fn queue_depth(&self) -> usize {
            64
        }

        fn check_unchanged(&self) -> Result<()> {
            Err(Error::new(ErrorKind::Changed, "far", "changed"))
        }
    }

    #[test]
    fn slice_reads_its_range_of_the_source() {
        let slice = Slice::new(Far, 4096 + 7, 100).unwrap();
        assert_eq!(slice.size(), 100);
        let mut bytes = [0; 10];
        slice.read_exact_at(&mut bytes, 90).unwrap();
        assert_eq!(bytes[0], (4096 + 97) as u8);
        assert!(slice.read_exact_at(&mut bytes, 91).is_err());
        let extent = slice.extent(98, 50).unwrap();
        assert_eq!((extent.offset, extent.length), (98, 2));
        assert!(slice.extent(100, 1).is_err());
        let origin = slice.origin(98, 50).unwrap();
        assert_eq!((origin.offset, origin.length), (98, 2));
        assert!(slice.origin(100, 1).is_err());
        assert!(slice.read_exact_at(&mut bytes, u64::MAX).is_err());
        assert_eq!(Slice::new(Far, (1 << 20) - 5, 100).unwrap().size(), 5);
        assert!(Slice::new(Far, (1 << 20) + 1, 0).is_none());
    }

    #[test]
    fn slices_and_pointers_forward_every_method() {
        let whole = Slice::new(Arc::new(Far) as Arc<dyn Source>, 0, u64::MAX).unwrap();
        let odd = Slice::new(&whole, 3 << 12, u64::MAX).unwrap();
        let boxed: Box<dyn Source + '_> = Box::new(&odd);
        for (source, granularity) in [(&whole as &dyn Source, 1 << 16), (&boxed, 1 << 12)] {
            assert_eq!(source.queue_depth(), 64);
            assert_eq!(source.granularity(), granularity);
            let origin = Origin { offset: 9, length: 5, kind: OriginKind::Zero };
            assert_eq!(source.origin(9, 100).unwrap(), origin);
            assert_eq!(source.check_unchanged().unwrap_err().kind(), ErrorKind::Changed);
        }
    }

    #[test]
    fn ranges_are_read_one_after_the_other() {
        let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let image = OpenOptions::new().open_storage(Box::new(Memory(bytes.clone())), "x");
        let image = image.unwrap();
        let ranges = [100..104, 104..105, 4096..8192, 9999..10_000];
        let slice = Slice::of_ranges(&image, ranges.clone()).unwrap();
        let expected: Vec<u8> = ranges
            .iter()
            .flat_map(|it| &bytes[it.start as usize..it.end as usize])
            .copied()
            .collect();
        assert_eq!(slice.size(), expected.len() as u64);
        for from in [0, 3, 4, 5, 1000, 4101] {
            let mut buf = vec![0; expected.len() - from];
            slice.read_exact_at(&mut buf, from as u64).unwrap();
            assert_eq!(buf, expected[from..]);
        }
        let extent = slice.extent(2, 100).unwrap();
        assert_eq!((extent.offset, extent.length, extent.kind), (2, 2, ExtentKind::Data));
        assert_eq!(slice.origin(5, 9000).unwrap().length, 4096);
        assert!(slice.extent(expected.len() as u64, 1).is_err());
        assert!(slice.read_exact_at(&mut [0; 2], expected.len() as u64 - 1).is_err());
    }

    #[test]
    fn ranges_that_are_not_in_order_are_refused() {
        let image = OpenOptions::new().open_storage(Box::new(Memory(vec![0; 100])), "x");
        let image = image.unwrap();
        for ranges in [[1..2, 5..5], [5..9, 8..10], [5..9, 0..1], [5..9, 99..101]] {
            assert!(Slice::of_ranges(&image, ranges).is_none());
        }
        assert_eq!(Slice::of_ranges(&image, []).unwrap().size(), 0);
    }

    #[test]
    fn granularity_is_that_of_the_ranges() {
        struct Coarse;
        impl Source for Coarse {
            fn size(&self) -> u64 {
                1 << 30
            }
            fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
                Ok(Extent { offset, length: limit, kind: ExtentKind::Data })
            }
            fn read_exact_at(&self, _: &mut [u8], _: u64) -> Result<()> {
                Ok(())
            }
            fn granularity(&self) -> u64 {
                1 << 16
            }
        }
        let of = |ranges: [Range<u64>; 2]| Slice::of_ranges(Coarse, ranges).unwrap().granularity();
        assert_eq!(of([0..1 << 20, 1 << 20..1 << 21]), 1 << 16);
        assert_eq!(of([1 << 20..1 << 21, 1 << 22..(1 << 22) + 5]), 1 << 16);
        assert_eq!(of([4096..8192, 1 << 22..1 << 23]), 4096);
        assert_eq!(of([0..5, 6..8]), 1);
    }

    #[test]
    fn segments_in_any_order() {
        let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let options = OpenOptions::new().format(crate::Format::Raw);
        let disk: Arc<dyn Source> =
            Arc::new(options.open_storage(Box::new(Memory(bytes.clone())), "x").unwrap());
        let segments = [5000..6000, 16..116, 6000..10_000, 16..116];
        let joined = Slice::joined(disk.clone(), segments.clone()).unwrap();
        let part = |it: &Range<u64>| &bytes[it.start as usize..it.end as usize];
        let expected: Vec<u8> = segments.iter().flat_map(part).copied().collect();
        assert_eq!(joined.size(), expected.len() as u64);
        for from in [0, 1, 999, 1000, 1050, 1100, 5199] {
            let mut buf = vec![0; expected.len() - from];
            joined.read_exact_at(&mut buf, from as u64).unwrap();
            assert_eq!(buf, expected[from..]);
        }
        assert_eq!(joined.extent(990, 100).unwrap().length, 10);
        assert_eq!(joined.locate(1000, 500), (16, 100));
        assert!(joined.extent(5200, 1).is_err());
        assert!(joined.read_exact_at(&mut [0; 2], 5199).is_err());
        for segment in [0..0, 9999..10_001, u64::MAX - 1..u64::MAX] {
            assert!(Slice::joined(disk.clone(), [segment]).is_none());
        }
        assert!(Slice::of_ranges(disk, segments).is_none());
    }
}
