//! Exports of Ceph RBD images, which `rbd export --export-format 2` writes.
//!
//! A header with options of the image is followed by differences: one for each snapshot, in order, and one for the image
//! itself. All differences, one after another, give the content. The headers of all records are
//! read when the export is opened, and give a map of the places of all extents in the file. What no record writes is
//! unallocated, and so is what was cut off by a smaller size of the image, also if the image grew again.
//!
//! The options do not matter for the content: offsets are in the image, also with other stripes.

mod records;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rangemap::RangeMap;

use self::records::{Record, Records};
use crate::chain::{Candidate, OpenedLayer};
use crate::error::{Error, ErrorKind, Result};
use crate::layer::{GuestRange, Layer, Mapping, MappingKind, Purpose};
use crate::storage::HostFile;

/// An export.
struct Rbd {
    file: Arc<HostFile>,
    size: u64,
    extents: Extents,
}

/// The extents with data. Each has the distance from an offset in the content to the one in the file, modulo 2^64, so that
/// parts of an extent have the value of the whole.
type Extents = RangeMap<u64, u64>;

/// Opens a file as an export of rbd.
pub(crate) fn open(image: &Candidate) -> Result<OpenedLayer> {
    let layer = Rbd::open(&image.file)?;
    Ok(OpenedLayer { layer: Box::new(layer), backing: None })
}

impl Rbd {
    fn open(file: &Arc<HostFile>) -> Result<Self> {
        if !file.read_head(IMAGE.len())?.starts_with(IMAGE) {
            return Err(file.error(ErrorKind::Format, "is not an rbd export of format 2"));
        }
        let mut records = Records::new(file);
        records.banner(IMAGE)?;
        while let Some(record) = records.next(b'E')? {
            check_option(&mut records, &record)?;
        }
        records.banner(DIFFS)?;
        let count = records.number()?;
        let mut content = Content::default();
        for _ in 0..count {
            content.apply(file, &mut records)?;
        }
        records.end()?;
        let Some(size) = content.size else {
            return Err(file.corrupt("has no size of the image"));
        };
        Ok(Self { file: file.clone(), size, extents: content.extents })
    }
}

/// The content after some differences.
#[derive(Default)]
struct Content {
    /// `None` until a record has it.
    size: Option<u64>,
    extents: Extents,
    /// Name of the snapshot that the last difference leads to.
    snapshot: Option<Vec<u8>>,
}

impl Content {
    /// Applies the next difference.
    fn apply(&mut self, file: &HostFile, records: &mut Records<'_>) -> Result<()> {
        let start = records.offset();
        let (mut from, mut to) = (None, None);
        records.banner(DIFF)?;
        while let Some(record) = records.next(b'e')? {
            match record.tag {
                b'f' => from = Some(records.name(&record)?),
                b't' => to = Some(records.name(&record)?),
                b'p' => records.protection(&record)?,
                b's' => self.resize(file, &record, records.value(&record)?)?,
                b'w' | b'z' => self.change(file, records, &record)?,
                _ => return Err(unknown(file, &record)),
            }
        }
        if from != self.snapshot {
            let reason = "has a difference that does not begin at the snapshot before it";
            return Err(file.corrupt(reason).at(start));
        }
        self.snapshot = to;
        Ok(())
    }

    fn resize(&mut self, file: &HostFile, record: &Record, size: u64) -> Result<()> {
        if size > MAX_SIZE {
            let reason = format!("has an image of {size} bytes, which is too large");
            return Err(file.corrupt(reason).at(record.offset));
        }
        self.extents.remove(size..u64::MAX);
        self.size = Some(size);
        Ok(())
    }

    /// Writes data or zeros.
    fn change(
        &mut self,
        file: &HostFile,
        records: &mut Records<'_>,
        record: &Record,
    ) -> Result<()> {
        let extent = records.extent(record)?;
        let (start, length) = (extent.guest, extent.length);
        let end = start.checked_add(length).filter(|end| *end <= self.size.unwrap_or(0));
        let Some(end) = end else {
            let reason = format!("has {length} bytes at {start}, past the end of the image");
            return Err(file.corrupt(reason).at(record.offset));
        };
        if length == 0 {
            return Ok(());
        }
        match extent.data {
            Some(data) => self.extents.insert(start..end, data.wrapping_sub(start)),
            None => self.extents.remove(start..end),
        }
        if self.extents.len() > MAX_EXTENTS {
            return Err(file.corrupt(format!("has more than {MAX_EXTENTS} extents")));
        }
        Ok(())
    }
}

impl Layer for Rbd {
    fn size(&self) -> u64 {
        self.size
    }

    fn map(&self, range: GuestRange, _purpose: Purpose) -> Result<Mapping<'_>> {
        let GuestRange { offset, limit, far, is_lowest } = range;
        let next = self.extents.overlapping(offset..self.size).next();
        Ok(match next {
            Some((extent, distance)) if extent.start <= offset => {
                let kind =
                    MappingKind::Host { file: &self.file, offset: offset.wrapping_add(*distance) };
                Mapping { kind, length: limit.min(extent.end - offset) }
            }
            _ => {
                let left = next.map_or(self.size, |(extent, _)| extent.start) - offset;
                match is_lowest {
                    true => Mapping { kind: MappingKind::Below, length: left.min(far) },
                    false => Mapping { kind: MappingKind::Zero, length: left.min(limit) },
                }
            }
        })
    }

    fn files(&self) -> Vec<&HostFile> {
        vec![&*self.file]
    }
}

/// Fails unless this is a known option of an image.
fn check_option(records: &mut Records<'_>, record: &Record) -> Result<()> {
    match record.tag {
        // The order, the features, and the unit and the number of stripes.
        b'O' | b'T' | b'U' | b'C' => records.value(record).map(|_| ()),
        b'M' => records.metadata(record),
        _ => Err(unknown(records.file(), record)),
    }
}

fn unknown(file: &HostFile, record: &Record) -> Error {
    let tag = record.tag.escape_ascii();
    let reason = format!("has a record of the kind \"{tag}\", which is not known");
    file.corrupt(reason).at(record.offset)
}

const IMAGE: &[u8] = b"rbd image v2\n";
const DIFFS: &[u8] = b"rbd image diffs v2\n";
const DIFF: &[u8] = b"rbd diff v2\n";

const MAX_SIZE: u64 = i64::MAX as u64;

/// Maximum number of extents with data in an rbd export. They take 200 MiB, and are enough for 16 TiB in objects of 4 MiB.
/// Limit in extents.
const MAX_EXTENTS: usize = 1 << 22;
