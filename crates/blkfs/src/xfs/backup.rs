//! The search for a secondary superblock.

use super::superblock::{MAGIC, MIN_SECTOR, Superblock};
use crate::backup::Backup;
use crate::bytes::{be32_at, le32_at};
use crate::crc::crc32c;
use crate::kind::Kind;
use crate::volume::Volume;

/// Returns the superblock of allocation group 1, where `mkfs.xfs` has it by default in a volume of this size.
pub(crate) fn find_backup(volume: &Volume) -> Option<Backup> {
    let mut places = BLOCK_SIZES.into_iter().flat_map(|block_size| {
        let blocks = volume.size() / block_size;
        let sizes = GROUP_COUNTS.map(|count| blocks.div_ceil(count) * block_size);
        sizes.into_iter().chain([MAX_GROUP]).map(move |offset| (block_size, offset))
    });
    places.find_map(|(block_size, offset)| {
        let superblock = read(volume, offset)?;
        (u64::from(superblock.block_size) == block_size).then_some(Backup {
            kind: Kind::Xfs,
            primary: 0,
            offset,
            block_size,
        })
    })
}

/// Reads the superblock of group 1, if there is a valid one whose file system fits.
fn read(volume: &Volume, offset: u64) -> Option<Superblock> {
    let first = volume.read(offset, MIN_SECTOR).ok()?;
    if be32_at(&first, 0) != Some(MAGIC) {
        return None;
    }
    let superblock = Superblock::parse(&first).ok()?;
    let is_in_place = superblock.offset(superblock.group_blocks.into()) == offset;
    let fits = superblock.offset(superblock.blocks) <= volume.size();
    (is_in_place && fits && matches(volume, &superblock, offset)).then_some(superblock)
}

/// Returns whether the CRC matches, if there is one.
fn matches(volume: &Volume, superblock: &Superblock, offset: u64) -> bool {
    if !superblock.is_v5 {
        return true;
    }
    let Ok(mut sector) = volume.read(offset, superblock.sector_size as usize) else { return false };
    let stored = le32_at(&sector, CRC);
    if let Some(field) = sector.get_mut(CRC..CRC + 4) {
        field.fill(0);
    }
    stored == Some(!crc32c(!0, &sector))
}

const BLOCK_SIZES: [u64; 8] = [4096, 1024, 512, 2048, 8192, 16384, 32768, 65536];

/// Numbers of allocation groups: of a disk, of small ones and of arrays.
const GROUP_COUNTS: [u64; 5] = [4, 2, 8, 16, 32];

/// Size of the groups of large disks in bytes.
const MAX_GROUP: u64 = 1 << 40;

/// Place of the CRC.
const CRC: usize = 224;
