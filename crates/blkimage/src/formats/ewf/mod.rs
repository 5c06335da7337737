//! Expert Witness images (`.E01`) of `EnCase`, FTK, linen, ewfacquire and SMART: segments that each are a chain of sections.
//!
//! The content is a list of chunks, each compressed by zlib or stored with an Adler-32 after it. Tables in the segments
//! say where chunks begin. Every checksum is compared: of sections when the image is opened, of the entries of a table
//! before the first chunk of the table is read, and of chunks whenever they are read. Both copies of a table
//! must be equal. ewfverify is milder with tables.
//!
//! Tables are looked up by window. Memory grows with the number of tables, not of chunks.

mod case;
mod check;
mod chunks;
mod names;
mod section;
mod segment;
mod sums;
mod table;
mod volume;

#[cfg(test)]
mod builder;
#[cfg(test)]
mod tests;

use self::chunks::{Chunks, Readers, Segment};
use self::segment::{End, Set};
use crate::acquisition::Acquisition;
use crate::chain::{Candidate, Chain, OpenedLayer};
use crate::check::{Summary, Visitor};
use crate::error::Result;
use crate::layer::{GuestRange, Layer, Mapping, MappingKind, Purpose, Stored};
use crate::stated::Stated;
use crate::storage::HostFile;

/// An image with all of its segments.
struct Ewf {
    chunks: Chunks,
    readers: Readers,
    stated: Stated,
    acquisition: Acquisition,
}

/// Opens the first segment of an image, and all others.
pub(crate) fn open(chain: &mut Chain<'_>, image: &Candidate) -> Result<OpenedLayer> {
    let mut set = Set::default();
    let mut files = vec![image.file.clone()];
    let mut end = set.read(&image.file)?;
    while end == End::Next {
        let name = names::segment(&image.file, set.segments() + 1)?;
        let (file, _) = chain.follow(image, "segment", &name)?;
        end = set.read(&file)?;
        files.push(file);
    }
    chain.add_files(files[1..].iter().cloned());
    let set = set.finish(&image.file)?;
    if let Some(errors) = set.describe_errors() {
        chain.warn(image.file.warning(errors));
    }
    let segments =
        files.into_iter().map(|file| Segment { file, caches: chain.layer_caches() }).collect();
    let segment::Finished { tables, chunk, size, stated, acquisition } = set;
    let readers = Readers::default();
    let chunks = Chunks { segments, tables, chunk, size };
    let layer = Ewf { chunks, readers, stated, acquisition };
    Ok(OpenedLayer { layer: Box::new(layer), backing: None })
}

impl Layer for Ewf {
    fn size(&self) -> u64 {
        self.chunks.size
    }

    /// Chunks of zeros look like others, so all is data. Reads go through all chunks that they need at once.
    fn map(&self, range: GuestRange, _purpose: Purpose) -> Result<Mapping<'_>> {
        let stored = Stored { offset: 0, length: 0 };
        Ok(Mapping { kind: MappingKind::Opaque(stored), length: range.limit })
    }

    fn read(&self, _stored: Stored, buf: &mut [u8], offset: u64) -> Result<()> {
        self.readers.read(&self.chunks, buf, offset)
    }

    fn stated(&self) -> Result<Option<Stated>> {
        Ok(Some(self.stated.clone()))
    }

    fn acquisition(&self) -> Option<&Acquisition> {
        Some(&self.acquisition)
    }

    fn check_structure(&self, visitor: &mut dyn Visitor) -> Result<Option<Summary>> {
        self.check(visitor).map(Some)
    }

    fn files(&self) -> Vec<&HostFile> {
        self.chunks.segments.iter().map(|segment| &*segment.file).collect()
    }

    /// A chunk is always decoded as a whole.
    fn granularity(&self) -> u64 {
        let files = self.chunks.segments.iter().map(|segment| segment.file.granularity());
        let chunk = if self.chunks.chunk.is_power_of_two() {
            self.chunks.chunk.min(MAX_GRANULARITY)
        } else {
            1
        };
        files.chain([chunk]).max().unwrap_or(1)
    }
}

/// Maximum granularity of a source, in bytes.
const MAX_GRANULARITY: u64 = 2 << 20;
