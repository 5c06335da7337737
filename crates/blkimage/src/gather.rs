//! Several ranges of a source, one after the other.

use std::ops::Range;

use crate::{Dirty, Error, ErrorKind, Extent, Lent, Origin, Result, Source, VolumeId};

/// Ranges of a source, one after the other, as a source of its own: the blocks of an image that changed, for example.
#[derive(Clone, Debug)]
pub struct Gather<S> {
    source: S,
    /// For each range, its offset here and in the source. Sorted by both.
    pieces: Vec<(u64, u64)>,
    size: u64,
    /// The largest power of two that all ranges are aligned to.
    alignment: u64,
}

impl<S: Source> Gather<S> {
    /// Gathers `ranges`, which are sorted, do not overlap, and are not empty. Returns `None` if they are not, or if one ends
    /// behind the end of the source.
    pub fn new(source: S, ranges: impl IntoIterator<Item = Range<u64>>) -> Option<Self> {
        let (mut pieces, mut size, mut end, mut bits) = (Vec::new(), 0, 0, 0);
        for range in ranges {
            if range.is_empty() || range.start < end || range.end > source.size() {
                return None;
            }
            bits |= size | range.start;
            pieces.push((size, range.start));
            size += range.end - range.start;
            end = range.end;
        }
        let alignment = 1 << bits.trailing_zeros().min(63);
        Some(Self { source, pieces, size, alignment })
    }

    /// Returns where the byte at `offset` lies in the source, and how many bytes of its range follow from there on, at most
    /// `limit`. The offset is not behind the end.
    pub fn locate(&self, offset: u64, limit: u64) -> (u64, u64) {
        let index = self.pieces.partition_point(|(start, _)| *start <= offset) - 1;
        let (start, place) = self.pieces[index];
        let end = self.pieces.get(index + 1).map_or(self.size, |(next, _)| *next);
        (place + (offset - start), (end - offset).min(limit))
    }

    fn check(&self, offset: u64, length: u64) -> Result<()> {
        if offset.checked_add(length).is_some_and(|end| end <= self.size) {
            return Ok(());
        }
        let reason = format!("{length} bytes asked for past the end of parts of {}", self.size);
        Err(Error::new(ErrorKind::Argument, "", reason).at(offset))
    }
}

impl<S: Source> Source for Gather<S> {
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

    fn check_unchanged(&self) -> Result<()> {
        self.source.check_unchanged()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExtentKind, Memory, OpenOptions};

    #[test]
    fn ranges_are_read_one_after_the_other() {
        let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let image = OpenOptions::new().open_storage(Box::new(Memory(bytes.clone())), "x");
        let image = image.unwrap();
        let ranges = [100..104, 104..105, 4096..8192, 9999..10_000];
        let gather = Gather::new(&image, ranges.clone()).unwrap();
        let expected: Vec<u8> = ranges
            .iter()
            .flat_map(|it| &bytes[it.start as usize..it.end as usize])
            .copied()
            .collect();
        assert_eq!(gather.size(), expected.len() as u64);
        for from in [0, 3, 4, 5, 1000, 4101] {
            let mut buf = vec![0; expected.len() - from];
            gather.read_exact_at(&mut buf, from as u64).unwrap();
            assert_eq!(buf, expected[from..]);
        }
        let extent = gather.extent(2, 100).unwrap();
        assert_eq!((extent.offset, extent.length, extent.kind), (2, 2, ExtentKind::Data));
        assert_eq!(gather.origin(5, 9000).unwrap().length, 4096);
        assert!(gather.extent(expected.len() as u64, 1).is_err());
        assert!(gather.read_exact_at(&mut [0; 2], expected.len() as u64 - 1).is_err());
    }

    #[test]
    fn ranges_that_are_not_in_order_are_refused() {
        let image = OpenOptions::new().open_storage(Box::new(Memory(vec![0; 100])), "x");
        let image = image.unwrap();
        for ranges in [[1..2, 5..5], [5..9, 8..10], [5..9, 0..1], [5..9, 99..101]] {
            assert!(Gather::new(&image, ranges).is_none());
        }
        assert_eq!(Gather::new(&image, []).unwrap().size(), 0);
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
        let of = |ranges: [Range<u64>; 2]| Gather::new(Coarse, ranges).unwrap().granularity();
        assert_eq!(of([0..1 << 20, 1 << 20..1 << 21]), 1 << 16);
        assert_eq!(of([1 << 20..1 << 21, 1 << 22..(1 << 22) + 5]), 1 << 16);
        assert_eq!(of([4096..8192, 1 << 22..1 << 23]), 4096);
        assert_eq!(of([0..5, 6..8]), 1);
    }
}
