//! The header of an image.

use crate::error::{Error, ErrorKind, Result};
use crate::formats::fields::{Head, array};
use crate::hint::Hint;
use crate::recognise::Way;
use crate::storage::HostFile;

use super::crc::{SEED, register};

/// The header of an image.
pub(super) struct Header {
    /// Name of the file system, by which partclone calls it.
    pub file_system: String,
    /// Version of partclone.
    pub version: String,
    /// Size of the device in bytes.
    pub size: u64,
    /// Number of blocks, all of which lie on the device.
    pub blocks: u64,
    /// Bytes in a block, not 0.
    pub block: u64,
    pub sums: Option<Sums>,
}

/// The CRC-32 of blocks.
#[derive(Clone, Copy)]
pub(super) struct Sums {
    /// Number of blocks with one checksum, not 0.
    pub blocks: u64,
    /// Whether each one begins with a new register.
    pub is_reseeded: bool,
}

impl Header {
    /// Size in bytes.
    pub const SIZE: u64 = 110;

    pub fn read(file: &HostFile) -> Result<Self> {
        let head = Head::read(file, 0, Self::SIZE as usize)?;
        let bytes = head.bytes();
        if !head.starts_with(MAGIC) {
            return Err(file.error(ErrorKind::Format, "is not a partclone image"));
        }
        if &bytes[30..34] != VERSION {
            return Err(other_version(file, &bytes[30..34]));
        }
        if register(SEED, &bytes[..106]) != head.le32(106) {
            return Err(file.corrupt("has a header that does not match its CRC-32").at(106));
        }
        let invalid = |at, reason: String| Err(file.corrupt(reason).at(at));
        let unknown = |at, reason: String| {
            let reason = format!("is a partclone image with {reason}");
            Err(file.error(ErrorKind::Unsupported, reason).at(at))
        };
        let number16 = |at| u16::from_le_bytes(array(bytes, at));
        if number16(34) != LITTLE_ENDIAN {
            return unknown(34, "numbers in big-endian order".into());
        }
        let (size, blocks, block) = (head.le64(52), head.le64(60), u64::from(head.le32(84)));
        if i64::try_from(size).is_err() {
            return invalid(52, format!("has an impossible size of {size} bytes"));
        }
        if block == 0 || block > MAX_BLOCK {
            return invalid(84, format!("has blocks of {block} bytes"));
        }
        if blocks.checked_mul(block).is_none_or(|end| end > size) {
            return invalid(60, format!("has {blocks} blocks of {block} bytes in {size} bytes"));
        }
        if bytes[105] != BITS {
            return unknown(105, format!("a bitmap of the kind {}", bytes[105]));
        }
        let sums = match (number16(96), number16(98), head.le32(100)) {
            (NO_SUM, 0, _) => None,
            (CRC_32, 4, 0) => return invalid(100, "has checksums of no block".into()),
            (CRC_32, 4, blocks) => {
                Some(Sums { blocks: blocks.into(), is_reseeded: bytes[104] != 0 })
            }
            (NO_SUM | CRC_32, length, _) => {
                return invalid(98, format!("has checksums of {length} bytes"));
            }
            (XXH64, ..) => return unknown(96, "XXH64 checksums, which are not known".into()),
            (XXH128, ..) => return unknown(96, "XXH128 checksums, which are not known".into()),
            (mode, ..) => return unknown(96, format!("checksums of the kind {mode:#x}")),
        };
        let (version, file_system) = (text(&bytes[16..30]), text(&bytes[36..52]));
        Ok(Self { file_system, version, size, blocks, block, sums })
    }
}

fn other_version(file: &HostFile, version: &[u8]) -> Error {
    let version = version.escape_ascii();
    let reason = format!("is a partclone image of version {version}, and only 0002 is read");
    let way = Way::Pipe("partclone.restore -C -s FILE -o -");
    let error = file.error(ErrorKind::Unsupported, reason).at(30);
    error.with_hint(Hint::NoDisk { way, compression: None })
}

/// Returns the text in a field, which zeros may follow.
fn text(field: &[u8]) -> String {
    let text = field.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

const MAGIC: &[u8] = b"partclone-image";

/// The version of partclone 0.3.
const VERSION: &[u8] = b"0002";

const LITTLE_ENDIAN: u16 = 0xc0de;

/// A bitmap with a bit for each block.
const BITS: u8 = 1;

/// Kinds of checksums.
const NO_SUM: u16 = 0;
const CRC_32: u16 = 0x20;
const XXH64: u16 = 0x30;
const XXH128: u16 = 0x31;

/// Maximum size of a block of a partclone image, as in partclone.
/// Limit in bytes.
const MAX_BLOCK: u64 = 64 << 20;
