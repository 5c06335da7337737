//! The headers of sparse files: of hosted products (`KDMV`) and of ESX (`COWD`).

use crate::error::{ErrorKind, Result};
use crate::formats::fields::{Head, array};
use crate::storage::HostFile;
use crate::warnings::Warning;

/// The header of a sparse file of hosted products. Sizes and offsets are in sectors.
pub(super) struct Header {
    pub capacity: u64,
    pub grain: u64,
    /// Offset of the embedded descriptor, or 0.
    pub descriptor: u64,
    pub descriptor_sectors: u64,
    /// Number of entries in a grain table.
    pub entries: u64,
    pub directory: u64,
    /// The second copy of the tables.
    pub redundant: Option<u64>,
    pub is_compressed: bool,
    /// Whether 1 in a grain table means a grain of zeros.
    pub has_zero_grains: bool,
    /// Whether the file was not closed after it was last written.
    pub is_unclean: bool,
}

impl Header {
    /// Reads the header at the start, or the one at the end if the former says so.
    pub fn read(file: &HostFile) -> Result<Self> {
        let head = Head::read(file, 0, SIZE)?;
        if !head.starts_with(KDMV) {
            return Err(file.error(ErrorKind::Format, "is not a vmdk image"));
        }
        if head.le64(12) == 0 && head.le64(28) != 0 {
            let reason = "is a sparse file that names others, which is not read";
            return Err(file.error(ErrorKind::Unsupported, reason));
        }
        let header = Self::parse(file, &head, 0)?;
        if header.directory != AT_END {
            return Ok(header);
        }
        let end = Self::read_footer(file)?;
        if end.layout() != header.layout() {
            return Err(file.corrupt("has a header at its end that contradicts the first one"));
        }
        Ok(Self { directory: end.directory, redundant: end.redundant, ..header })
    }

    /// Returns the fields that must be the same in both headers of a file.
    fn layout(&self) -> impl PartialEq {
        (self.capacity, self.grain, self.entries, self.is_compressed, self.has_zero_grains)
    }

    fn parse(file: &HostFile, head: &Head<'_>, offset: u64) -> Result<Self> {
        let unsupported =
            |reason: String, at| file.error(ErrorKind::Unsupported, reason).at(offset + at);
        let corrupt = |reason: &str, at| file.corrupt(reason).at(offset + at);
        let version = head.le32(4);
        if !(1..=MAX_VERSION).contains(&version) {
            return Err(unsupported(format!("has the unknown vmdk version {version}"), 4));
        }
        let flags = head.le32(8);
        if flags & !KNOWN_FLAGS != 0 {
            let reason = format!("has unknown flags {:#x} in its header", flags & !KNOWN_FLAGS);
            return Err(unsupported(reason, 8));
        }
        if flags & NEWLINES != 0 && array(head.bytes(), 73) != *b"\n \r\n" {
            let reason = "has damaged line ends in its header: it was transferred as text";
            return Err(corrupt(reason, 73));
        }
        let compression = u16::from_le_bytes(array(head.bytes(), 77));
        let is_compressed = match (compression, flags & COMPRESSED != 0, flags & MARKERS != 0) {
            (0, false, _) => false,
            (1, true, true) => true,
            (1, true, false) => {
                return Err(unsupported("has compressed grains without markers".into(), 8));
            }
            (0 | 1, ..) => {
                return Err(corrupt("has a compression and flags that contradict each other", 77));
            }
            (other, ..) => {
                return Err(unsupported(format!("has the unknown compression {other}"), 77));
            }
        };
        let overhead = head.le64(64);
        if file.size().div_ceil(SECTOR) < overhead {
            let reason = format!("is cut off: its tables have {overhead} sectors");
            return Err(corrupt(&reason, 64));
        }
        let redundant = Some(head.le64(48)).filter(|at| flags & REDUNDANT != 0 && *at != 0);
        Ok(Self {
            capacity: head.le64(12),
            grain: head.le64(20),
            descriptor: head.le64(28),
            descriptor_sectors: head.le64(36),
            entries: u64::from(head.le32(44)),
            directory: head.le64(56),
            redundant,
            is_compressed,
            has_zero_grains: flags & ZERO_GRAINS != 0,
            is_unclean: head.bytes()[72] != 0,
        })
    }

    /// Reads the header at the end of a file that was written as a stream: a marker, the header, and
    /// the marker of the end.
    fn read_footer(file: &HostFile) -> Result<Self> {
        let cut_off = |offset| {
            let reason = "does not end with its footer: it was cut off, or something follows it";
            file.corrupt(reason).at(offset)
        };
        let Some(offset) = file.size().checked_sub(3 * SECTOR).filter(|at| at % SECTOR == 0) else {
            return Err(cut_off(file.size()));
        };
        let footer = Head::read(file, offset, 3 * SIZE)?;
        let (marker, header, end) = (0, SIZE, 2 * SIZE);
        let is_complete = footer.le32(marker + 8) == 0
            && footer.le32(marker + 12) == FOOTER_MARKER
            && footer.bytes()[header..].starts_with(KDMV)
            && footer.bytes()[end..end + 16] == [0; 16];
        if !is_complete {
            return Err(cut_off(offset));
        }
        let offset = offset + SECTOR;
        let header = Self::parse(file, &Head::read(file, offset, SIZE)?, offset)?;
        if header.directory == AT_END {
            let reason = "has a header at its end that does not say where the tables are";
            return Err(file.corrupt(reason).at(offset + 56));
        }
        Ok(header)
    }
}

/// The header of a sparse file of ESX. Sizes and offsets are in sectors.
pub(super) struct CowdHeader {
    pub capacity: u64,
    pub grain: u64,
    pub directory: u64,
    /// Number of entries in the grain directory.
    pub directory_entries: u64,
    pub is_unclean: bool,
}

impl CowdHeader {
    pub fn read(file: &HostFile) -> Result<Self> {
        let head = Head::read(file, 0, COWD_SIZE)?;
        if !head.starts_with(COWD) {
            return Err(file.error(ErrorKind::Format, "is not a vmdk image"));
        }
        let version = head.le32(4);
        if version != 1 {
            let reason = format!("has the unknown version {version} of a sparse file of ESX");
            return Err(file.error(ErrorKind::Unsupported, reason).at(4));
        }
        Ok(Self {
            capacity: u64::from(head.le32(12)),
            grain: u64::from(head.le32(16)),
            directory: u64::from(head.le32(20)),
            directory_entries: u64::from(head.le32(24)),
            is_unclean: head.le32(1648) != 0,
        })
    }
}

/// Creates the warning about a file that was not closed.
pub(super) fn unclean(file: &HostFile) -> Warning {
    let reason =
        "was not closed after it was written: what can be read may not be what was written";
    file.warning(reason)
}

/// The first bytes of a sparse file of hosted products, and of one of ESX.
pub(super) const KDMV: &[u8] = b"KDMV";
pub(super) const COWD: &[u8] = b"COWD";

/// Size in bytes of the unit of all sizes and offsets.
pub(super) const SECTOR: u64 = 512;

const SIZE: usize = SECTOR as usize;
const COWD_SIZE: usize = 4 * SIZE;

/// Version 3 adds a list of changed blocks beside the disk.
const MAX_VERSION: u32 = 3;

/// Whether the header has the characters that a transfer as text would change.
const NEWLINES: u32 = 1 << 0;
/// Whether there is a second copy of the tables.
const REDUNDANT: u32 = 1 << 1;
const ZERO_GRAINS: u32 = 1 << 2;
const COMPRESSED: u32 = 1 << 16;
const MARKERS: u32 = 1 << 17;
const KNOWN_FLAGS: u32 = NEWLINES | REDUNDANT | ZERO_GRAINS | COMPRESSED | MARKERS;

/// Offset of the directory if it is in the header at the end.
const AT_END: u64 = u64::MAX;

const FOOTER_MARKER: u32 = 3;
