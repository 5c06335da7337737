//! The header of a parallels image.

use crate::error::{Error, ErrorKind, Result};
use crate::formats::empty::check_empty;
use crate::formats::fields::{Entry, Head, check_inside};
use crate::formats::table_cache::Table;
use crate::storage::HostFile;

/// A validated header.
pub(super) struct Header {
    /// Virtual size in bytes.
    pub size: u64,
    /// Size of a cluster in bytes.
    pub cluster: u64,
    /// Number of bytes that an entry counts in: a sector or a cluster.
    pub unit: u64,
    /// The entries of the clusters within the virtual size.
    pub table: Table,
    /// Whether a program opened the image for writing and did not close it.
    pub is_open: bool,
    /// Whether nothing was ever written.
    pub is_empty: bool,
    /// Offset of the cluster with extensions, if any.
    pub extension: Option<u64>,
}

impl Header {
    pub fn read(file: &HostFile) -> Result<Self> {
        let not_parallels = || file.error(ErrorKind::Format, "is not a parallels image");
        if file.size() < HEADER as u64 {
            return Err(not_parallels());
        }
        let head = Head::read(file, 0, HEADER)?;
        let counts_sectors = match &head.bytes()[..16] {
            b"WithoutFreeSpace" => true,
            b"WithouFreSpacExt" => false,
            _ => return Err(not_parallels()),
        };
        let (version, tracks, entries) = (head.le32(16), head.le32(28), head.le32(32));
        if version != VERSION {
            let reason = format!("parallels version {version} is not known");
            return Err(file.error(ErrorKind::Unsupported, reason).at(16));
        }
        if tracks == 0 || tracks > MAX_TRACKS {
            return Err(file.corrupt(format!("clusters of {tracks} sectors are not valid")).at(28));
        }
        if entries > MAX_ENTRIES {
            return Err(file.corrupt(format!("table has more than {MAX_ENTRIES} entries")).at(32));
        }
        let sectors = head.le64(36) & if counts_sectors { 0xffff_ffff } else { u64::MAX };
        let needed = sectors.div_ceil(u64::from(tracks));
        // Past the end of the table, QEMU reads zeros up to any size.
        if needed > u64::from(entries) {
            return Err(file.corrupt("is larger than its table").at(36));
        }
        let flags = head.le32(52);
        if flags & !EMPTY != 0 {
            return Err(unknown_flags(file, flags));
        }
        let extension = match head.le64(56) {
            0 => None,
            // The limit of files in QEMU.
            sector if sector > i64::MAX as u64 / SECTOR => {
                let reason =
                    format!("extensions begin past the end of the file, in sector {sector}");
                return Err(file.corrupt(reason).at(56));
            }
            sector => Some(sector * SECTOR),
        };
        let table = Table { offset: HEADER as u64, length: needed * 4, entry: Entry::Le32 };
        check_inside(file, table.offset, table.length, "table")?;
        let whole = Table { length: u64::from(entries) * 4, ..table };
        check_empty(file, sectors, whole, |entry| entry != 0)?;
        let cluster = u64::from(tracks) * SECTOR;
        Ok(Self {
            size: sectors * SECTOR,
            cluster,
            unit: if counts_sectors { SECTOR } else { cluster },
            table,
            is_open: head.le32(44) == IN_USE,
            is_empty: flags & EMPTY != 0,
            extension,
        })
    }
}

fn unknown_flags(file: &HostFile, flags: u32) -> Error {
    let reason = if flags & CONVERTING != 0 {
        "is being converted to another version".into()
    } else {
        format!("flags {flags:#x} are not known")
    };
    file.error(ErrorKind::Unsupported, reason).at(52)
}

pub(super) const SECTOR: u64 = 512;

const HEADER: usize = 64;
const VERSION: u32 = 2;
/// Limits of QEMU.
const MAX_TRACKS: u32 = i32::MAX as u32 / 513;
const MAX_ENTRIES: u32 = i32::MAX as u32 / 4;
/// The image is open for writing.
const IN_USE: u32 = 0x746f_6e59;

/// Flags. QEMU ignores them.
const EMPTY: u32 = 1 << 0;
const CONVERTING: u32 = 1 << 1;
