//! A source made of ranges of another one, in any order.

use std::sync::Arc;

use blkimage::{Error, ErrorKind, Extent, Lent, Origin, Result, Source};

use super::group::Segment;

/// The content of a linear logical volume.
#[derive(Clone)]
pub struct Linear {
    source: Arc<dyn Source>,
    /// For each segment, its offset in the content and in the source. Sorted by the former.
    pieces: Vec<(u64, u64)>,
    size: u64,
    /// The largest power of two that all segments are aligned to.
    alignment: u64,
}

impl Linear {
    /// Returns the content of segments of `source`, one after the other. Returns `None` if there is none, if one is
    /// empty, or if one ends behind the end of the source.
    pub fn new(source: Arc<dyn Source>, segments: &[Segment]) -> Option<Self> {
        let (mut pieces, mut size, mut bits) = (Vec::new(), 0_u64, 0);
        for Segment { offset, length } in segments {
            let end = offset.checked_add(*length)?;
            if *length == 0 || end > source.size() {
                return None;
            }
            bits |= size | offset;
            pieces.push((size, *offset));
            size = size.checked_add(*length)?;
        }
        let alignment = 1 << bits.trailing_zeros().min(63);
        (!pieces.is_empty()).then_some(Self { source, pieces, size, alignment })
    }

    /// Returns where the byte at `offset` lies in the source, and how many bytes of its segment follow from there on,
    /// at most `limit`. The offset is not behind the end.
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
        let reason = format!("{length} bytes asked for past the end of a volume of {}", self.size);
        Err(Error::new(ErrorKind::Argument, "", reason).at(offset))
    }
}

impl Source for Linear {
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
    use blkimage::{Format, Memory, OpenOptions};

    use super::*;

    #[test]
    fn segments_in_any_order() {
        let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let options = OpenOptions::new().format(Format::Raw);
        let disk: Arc<dyn Source> =
            Arc::new(options.open_storage(Box::new(Memory(bytes.clone())), "x").unwrap());
        let segments = [(5000, 1000), (16, 100), (6000, 4000), (16, 100)];
        let segments = segments.map(|(offset, length)| Segment { offset, length });
        let linear = Linear::new(disk.clone(), &segments).unwrap();
        let part = |it: &Segment| &bytes[it.offset as usize..][..it.length as usize];
        let expected: Vec<u8> = segments.iter().flat_map(part).copied().collect();
        assert_eq!(linear.size(), expected.len() as u64);
        for from in [0, 1, 999, 1000, 1050, 1100, 5199] {
            let mut buf = vec![0; expected.len() - from];
            linear.read_exact_at(&mut buf, from as u64).unwrap();
            assert_eq!(buf, expected[from..]);
        }
        assert_eq!(linear.extent(990, 100).unwrap().length, 10);
        assert_eq!(linear.locate(1000, 500), (16, 100));
        assert!(linear.extent(5200, 1).is_err());
        assert!(linear.read_exact_at(&mut [0; 2], 5199).is_err());
        for (offset, length) in [(0, 0), (9999, 2), (u64::MAX, 2)] {
            assert!(Linear::new(disk.clone(), &[Segment { offset, length }]).is_none());
        }
        assert!(Linear::new(disk, &[]).is_none());
    }
}
