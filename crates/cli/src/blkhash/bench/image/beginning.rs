//! The beginning of an image: enough of it to measure, whatever its size.

use blkimage::{ExtentKind, Result, Slice, Source};

/// The first part of an image.
pub struct Beginning<'a> {
    /// The bytes to read.
    pub source: Slice<&'a dyn Source>,
    /// Bytes of data in it.
    pub data: u64,
}

impl<'a> Beginning<'a> {
    /// Returns the first part of `source` that holds `data` bytes of data, or all of it.
    pub fn new(source: &'a dyn Source, data: u64) -> Result<Self> {
        let (mut size, mut found) = (0, 0);
        while size < source.size() && found < data {
            let extent = source.extent(size, source.size() - size)?;
            let mut length = extent.length;
            if extent.kind == ExtentKind::Data {
                length = length.min(data - found);
                found += length;
            }
            size += length;
        }
        let source = Slice::new(source, 0, size).expect("it begins with the source");
        Ok(Self { source, data: found })
    }
}
