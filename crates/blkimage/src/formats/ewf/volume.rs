//! The section `volume`: how large the content is, and how it is cut into chunks. Other segments have a copy, `data`.

use super::section::Section;
use crate::error::{ErrorKind, Result};

/// What a volume section says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Volume {
    /// Number of chunks.
    pub chunks: u64,
    /// Size of a chunk in bytes.
    pub chunk: u64,
    /// Size of a sector in bytes.
    pub sector: u64,
    /// Size of the content in bytes.
    pub size: u64,
    pub medium: u8,
    pub flags: u8,
    pub compression: u8,
    /// Sectors that are given up together if one cannot be read.
    pub granularity: u32,
    /// The id of all segments of one image, zero in old ones.
    pub id: [u8; 16],
    /// Whether this is the short section of SMART, in whose segments tables have no checksum of their entries.
    pub is_short: bool,
}

impl Volume {
    pub fn read(section: &Section<'_>) -> Result<Self> {
        let length = section.end - section.start();
        let is_short = length < LONG;
        let head = section.summed(if is_short { SHORT } else { LONG })?;
        let [chunks, per_chunk, sector] = [4, 8, 12].map(|at| u64::from(head.le32(at)));
        let sectors = if is_short { u64::from(head.le32(16)) } else { head.le64(16) };
        let mut id = [0; 16];
        let (mut medium, mut flags, mut compression) = (FIXED, PHYSICAL, u8::MAX);
        let mut granularity = 0;
        if !is_short {
            let bytes = head.bytes();
            (medium, flags, compression) = (bytes[0], bytes[36], bytes[52]);
            id.copy_from_slice(&bytes[64..80]);
            granularity = head.le32(56);
        }
        let chunk = per_chunk.saturating_mul(sector);
        let size = sectors.checked_mul(sector).filter(|size| i64::try_from(*size).is_ok());
        let Some(size) = size else { return Err(section.invalid("states an impossible size")) };
        if size > 0 && chunk == 0 {
            return Err(section.invalid("states chunks without sectors"));
        }
        if chunk > MAX_CHUNK {
            let reason = format!("has chunks of more than {MAX_CHUNK} bytes");
            return Err(section.file().error(ErrorKind::Unsupported, reason).at(section.offset));
        }
        let chunk = chunk.max(1);
        // libewf has a chunk for bytes that are no whole sector, and does not count them.
        if !matches!(chunks.checked_sub(size.div_ceil(chunk)), Some(0 | 1)) {
            return Err(section.invalid("states a number of chunks that does not fit its sectors"));
        }
        Ok(Self {
            chunks,
            chunk,
            sector,
            size,
            medium,
            flags,
            compression,
            granularity,
            id,
            is_short,
        })
    }

    /// Returns the name of the kind of medium.
    pub fn medium(&self) -> Option<&'static str> {
        match self.medium {
            0x00 => Some("removable"),
            FIXED => Some("fixed"),
            0x03 => Some("optical"),
            0x10 => Some("memory"),
            _ => None,
        }
    }

    /// Returns the name of the compression.
    pub fn compression(&self) -> Option<&'static str> {
        match self.compression {
            0 => Some("none"),
            1 => Some("fast"),
            2 => Some("best"),
            _ => None,
        }
    }

    pub fn is_physical(&self) -> bool {
        self.flags & PHYSICAL != 0
    }

    /// Whether the content is files instead of a medium.
    pub fn is_of_files(&self) -> bool {
        self.medium == FILES
    }
}

/// Size of the section in bytes.
const LONG: u64 = 1052;

/// Size of the section of SMART and old formats in bytes.
const SHORT: u64 = 94;

const FIXED: u8 = 1;
const FILES: u8 = 0x0e;
const PHYSICAL: u8 = 2;

/// Maximum size of a chunk of an EWF image. `EnCase` has at most 32768 sectors of 512 bytes in one. Each thread holds one.
/// Limit in bytes.
const MAX_CHUNK: u64 = 16 << 20;
