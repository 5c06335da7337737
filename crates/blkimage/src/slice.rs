//! A range of a source.

use crate::{Dirty, Error, ErrorKind, Extent, Lent, Origin, Result, Source, VolumeId};

/// A range of a source as a source of its own, for example a partition of a disk.
#[derive(Clone, Debug)]
pub struct Slice<S> {
    source: S,
    offset: u64,
    length: u64,
}

impl<S: Source> Slice<S> {
    /// Returns a slice of `length` bytes from `offset` on, shorter if the source ends earlier. Returns
    /// `None` if `offset` lies past the end of the source.
    pub fn new(source: S, offset: u64, length: u64) -> Option<Self> {
        let left = source.size().checked_sub(offset)?;
        Some(Self { source, offset, length: length.min(left) })
    }

    fn check(&self, offset: u64, length: u64) -> Result<()> {
        if offset.checked_add(length).is_some_and(|end| end <= self.length) {
            return Ok(());
        }
        let reason = format!("{length} bytes asked for past the end of a part of {}", self.length);
        Err(Error::new(ErrorKind::Argument, "", reason).at(offset))
    }
}

impl<S: Source> Source for Slice<S> {
    fn size(&self) -> u64 {
        self.length
    }

    fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
        self.check(offset, 1)?;
        let limit = limit.min(self.length - offset);
        let extent = self.source.extent(self.offset + offset, limit)?;
        Ok(Extent { offset, ..extent })
    }

    fn origin(&self, offset: u64, limit: u64) -> Result<Origin> {
        self.check(offset, 1)?;
        let limit = limit.min(self.length - offset);
        let origin = self.source.origin(self.offset + offset, limit)?;
        Ok(Origin { offset, ..origin })
    }

    fn volumes(&self) -> Vec<VolumeId> {
        self.source.volumes()
    }

    fn volume_origins(&self, offset: u64, limit: u64, dirty: Dirty) -> Result<Vec<Origin>> {
        self.check(offset, 1)?;
        let limit = limit.min(self.length - offset);
        let mut origins = self.source.volume_origins(self.offset + offset, limit, dirty)?;
        origins.iter_mut().for_each(|origin| origin.offset -= self.offset);
        Ok(origins)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.check(offset, buf.len() as u64)?;
        self.source.read_exact_at(buf, self.offset + offset)
    }

    fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        self.check(offset, length as u64).ok()?;
        self.source.lend(self.offset + offset, length)
    }

    /// Returns the granularity of the source, reduced to the alignment of the slice's offset.
    fn granularity(&self) -> u64 {
        match self.offset {
            0 => self.source.granularity(),
            offset => self.source.granularity().min(1 << offset.trailing_zeros()),
        }
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
    use std::sync::Arc;

    use super::*;
    use crate::{ExtentKind, OriginKind};

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
}
