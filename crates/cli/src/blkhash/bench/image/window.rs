//! The beginning of an image: enough of it to measure, whatever its size.

use blkimage::{Extent, ExtentKind, Lent, Result, Source};

/// The first bytes of an image.
pub struct Window<'a> {
    source: &'a dyn Source,
    size: u64,
    data: u64,
}

impl<'a> Window<'a> {
    /// The first part of `source` that holds `data` bytes of data, or all of it.
    pub fn new(source: &'a dyn Source, data: u64) -> Result<Self> {
        let mut window = Self { source, size: 0, data: 0 };
        while window.size < source.size() && window.data < data {
            let extent = source.extent(window.size, source.size() - window.size)?;
            let mut length = extent.length;
            if extent.kind == ExtentKind::Data {
                length = length.min(data - window.data);
                window.data += length;
            }
            window.size += length;
        }
        Ok(window)
    }

    /// Bytes of data in it.
    pub fn data(&self) -> u64 {
        self.data
    }
}

impl Source for Window<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
        self.source.extent(offset, limit.min(self.size - offset))
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.source.read_exact_at(buf, offset)
    }

    fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        self.source.lend(offset, length)
    }

    fn granularity(&self) -> u64 {
        self.source.granularity()
    }

    fn check_unchanged(&self) -> Result<()> {
        self.source.check_unchanged()
    }
}
