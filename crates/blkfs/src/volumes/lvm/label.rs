//! The label of a physical volume, and the header after it.
//!
//! | offset | length | field, numbers in little endian |
//! |--:|--:|---|
//! | 0 | 8 | `LABELONE` |
//! | 8 | 8 | number of the sector |
//! | 16 | 4 | checksum from offset 20 to the end of the sector |
//! | 20 | 4 | offset of the header of the physical volume |
//! | 24 | 8 | `LVM2 001` |
//!
//! The header has the UUID, the size, and two lists of places that each end with zeros: of data, and of metadata areas.

use super::crc::crc;
use crate::bytes::{le32_at, le64_at};
use crate::error::Result;
use crate::volume::Volume;
use crate::volumes::Checks;

/// What the label of a physical volume says.
pub(super) struct Label {
    pub uuid: [u8; 32],
    /// Size of the physical volume in bytes.
    pub size: u64,
    /// Offset and length of each metadata area in bytes.
    pub areas: Vec<(u64, u64)>,
}

impl Label {
    /// Finds the label, verifies its checksum, and adds what is wrong with it to `checks`. A damaged label is still used.
    pub fn find(volume: &Volume, checks: &mut Checks) -> Result<Option<Self>> {
        let sectors = (volume.size() / SECTOR).min(SECTORS);
        let bytes = volume.read(0, (sectors * SECTOR) as usize)?;
        let sectors = || (0_u64..).zip(bytes.chunks_exact(SECTOR as usize));
        let intact = sectors().find(|(number, sector)| is_label(sector, *number, &mut None));
        // A damaged label has one of the two names, and an intact one may follow it.
        let has_name = |sector: &[u8]| sector.starts_with(ID) || &sector[24..32] == TYPE;
        let found = intact.or_else(|| sectors().find(|(_, sector)| has_name(sector)));
        let Some((number, sector)) = found else { return Ok(None) };
        let (mut defect, offset) = (None, number * SECTOR);
        if is_label(sector, number, &mut defect) {
            checks.matched(NAME, SECTOR);
        } else if let Some(Defect::Checksum { stored, computed }) = defect {
            let reason = format!("crc32 {computed:#010x}, stored {stored:#010x}");
            checks.mismatch(NAME, offset, SECTOR, reason);
        } else if let Some(Defect::Field(reason)) = defect {
            checks.damaged(NAME, offset, reason);
        }
        let label = Self::parse(sector);
        if label.is_none() {
            checks.damaged(NAME, offset, "its lists do not end within the sector");
        }
        Ok(Some(label.unwrap_or(Self { uuid: [b'0'; 32], size: 0, areas: Vec::new() })))
    }

    fn parse(sector: &[u8]) -> Option<Self> {
        let header = sector.get(le32_at(sector, 20)? as usize..)?;
        let uuid = *header.first_chunk()?;
        let size = le64_at(header, 32)?;
        let mut at = 40;
        let mut list = || {
            let mut places = Vec::new();
            loop {
                let place = (le64_at(header, at)?, le64_at(header, at + 8)?);
                at += 16;
                if place.0 == 0 {
                    return Some(places);
                }
                places.push(place);
            }
        };
        list()?;
        Some(Self { uuid, size, areas: list()? })
    }
}

enum Defect {
    Checksum { stored: u32, computed: u32 },
    Field(String),
}

/// Returns whether a sector is an intact label. If not, sets the reason.
fn is_label(sector: &[u8], number: u64, defect: &mut Option<Defect>) -> bool {
    let stored = le32_at(sector, 16).unwrap_or_default();
    let computed = crc(&[&sector[20..]]);
    let place = le64_at(sector, 8).unwrap_or_default();
    *defect = match () {
        () if !sector.starts_with(ID) => {
            Some(Defect::Field("it does not begin with LABELONE".to_owned()))
        }
        () if stored != computed => Some(Defect::Checksum { stored, computed }),
        () if place != number => Some(Defect::Field(format!("it belongs to sector {place}"))),
        () if &sector[24..32] != TYPE => Some(Defect::Field("it has an unknown type".to_owned())),
        () => None,
    };
    defect.is_none()
}

const NAME: &str = "label";
const ID: &[u8] = b"LABELONE";
const TYPE: &[u8] = b"LVM2 001";

/// Size of a sector in bytes, whatever the disk's is.
pub(super) const SECTOR: u64 = 512;

/// Number of the first sectors that may have the label.
const SECTORS: u64 = 4;
