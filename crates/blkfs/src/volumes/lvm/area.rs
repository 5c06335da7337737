//! A metadata area: a header, and a ring buffer with the text of the metadata.
//!
//! | offset | length | field, numbers in little endian |
//! |--:|--:|---|
//! | 0 | 4 | checksum from offset 4 to the end of the header |
//! | 4 | 16 | magic bytes |
//! | 20 | 4 | version, 1 |
//! | 24 | 8 | offset of the area on the physical volume |
//! | 32 | 8 | size of the area, header included |
//! | 40 | 24 | offset in the area, size, checksum and flags of the text that is valid |
//!
//! A text that ends past the area continues after the header.

use super::crc::crc;
use crate::bytes::{le32_at, le64_at};
use crate::volume::Volume;
use crate::volumes::Checks;

/// The text of an area, whose checksum matches.
pub(super) struct Text {
    /// Offset on the physical volume in bytes.
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// Verifies an area. Returns its text if it has an intact one.
pub(super) fn read(volume: &Volume, area: (u64, u64), checks: &mut Checks) -> Option<Text> {
    let (offset, length) = area;
    let header = match volume.read(offset, HEADER) {
        Ok(header) => header,
        Err(error) => {
            checks.failed(HEADER_NAME, offset, &error);
            return None;
        }
    };
    if !verify_header(&header, area, checks) {
        return None;
    }
    let place = Place::parse(&header)?;
    // The last update was interrupted, or there is no volume group.
    if place.offset == 0 || place.flags & IGNORED != 0 {
        return None;
    }
    match place.read(volume, offset, length) {
        Err(reason) => {
            checks.damaged(TEXT_NAME, offset.saturating_add(place.offset), reason);
            None
        }
        Ok((bytes, computed)) => {
            let start = offset + place.offset;
            if computed != place.checksum {
                let stored = place.checksum;
                let reason = format!("crc32 {computed:#010x}, stored {stored:#010x}");
                checks.mismatch(TEXT_NAME, start, place.size, reason);
                return None;
            }
            checks.matched(TEXT_NAME, place.size);
            Some(Text { offset: start, bytes })
        }
    }
}

/// Returns whether the header of an area is intact.
fn verify_header(header: &[u8], (offset, length): (u64, u64), checks: &mut Checks) -> bool {
    let stored = le32_at(header, 0).unwrap_or_default();
    let computed = crc(&[&header[4..]]);
    if stored != computed {
        let reason = format!("crc32 {computed:#010x}, stored {stored:#010x}");
        checks.mismatch(HEADER_NAME, offset, HEADER as u64, reason);
        return false;
    }
    let version = le32_at(header, 20).unwrap_or_default();
    let place = (le64_at(header, 24).unwrap_or_default(), le64_at(header, 32).unwrap_or_default());
    let reason = match () {
        () if &header[4..20] != MAGIC => "its magic bytes are missing".to_owned(),
        () if version != 1 => format!("its version is {version}"),
        () if place.0 != offset => format!("it belongs to offset {}", place.0),
        () if place.1 != length => {
            format!("its area has {} bytes, and the label says {length}", place.1)
        }
        () => {
            checks.matched(HEADER_NAME, HEADER as u64);
            return true;
        }
    };
    checks.damaged(HEADER_NAME, offset, reason);
    false
}

/// The place of a text in an area.
struct Place {
    offset: u64,
    size: u64,
    checksum: u32,
    flags: u32,
}

impl Place {
    fn parse(header: &[u8]) -> Option<Self> {
        Some(Self {
            offset: le64_at(header, 40)?,
            size: le64_at(header, 48)?,
            checksum: le32_at(header, 56)?,
            flags: le32_at(header, 60)?,
        })
    }

    /// Reads the text in an area at `start`, and computes its checksum.
    fn read(&self, volume: &Volume, start: u64, length: u64) -> Result<(Vec<u8>, u32), String> {
        let Self { offset, size, .. } = *self;
        let first = HEADER as u64;
        let room = length.saturating_sub(first);
        if size == 0 || size > room || !(first..length).contains(&offset) {
            return Err(format!(
                "{size} bytes at {offset} do not lie in an area of {length} bytes"
            ));
        }
        if size > MAX_TEXT {
            return Err(format!("{size} bytes are too many"));
        }
        let head = size.min(length - offset);
        let fail = |error: crate::Error| error.to_string();
        let place = start.checked_add(offset).ok_or("it lies past the end")?;
        let mut bytes = volume.read(place, head as usize).map_err(fail)?;
        let rest = volume.read(start + first, (size - head) as usize).map_err(fail)?;
        let computed = crc(&[&bytes, &rest]);
        bytes.extend_from_slice(&rest);
        Ok((bytes, computed))
    }
}

const HEADER_NAME: &str = "metadata area header";
const TEXT_NAME: &str = "metadata text";

/// Size of the header in bytes.
const HEADER: usize = 512;

const MAGIC: &[u8; 16] = b" LVM2 x[5A%r0N*>";

/// Flag of a text that is not used, because the area is spare.
const IGNORED: u32 = 1;

/// Maximum size of the metadata of a volume group. The metadata of thousands of volumes has some megabytes.
/// Limit in bytes.
const MAX_TEXT: u64 = 32 << 20;
