//! The search for a backup of the superblock.

use super::checksum::Check;
use super::superblock::{OFFSET, SIZE, Superblock, ro_compat};
use crate::backup::Backup;
use crate::bytes::le16_at;
use crate::volume::Volume;

/// Returns the first valid backup in a place that `mke2fs` chooses by default.
pub(crate) fn find_backup(volume: &Volume) -> Option<Backup> {
    let logs = 0..=MAX_BLOCK_LOG;
    let places = logs.flat_map(|log| {
        let block_size = 1024_u64 << log;
        // One block of the bitmap has a bit for each block of a group, or with bigalloc for each cluster.
        [1, CLUSTER_BLOCKS].into_iter().flat_map(move |cluster| {
            let group_blocks = 8 * block_size * cluster;
            let first_block = u64::from(log == 0 && cluster == 1);
            GROUPS
                .map(|group| (group, block_size, (first_block + group * group_blocks) * block_size))
        })
    });
    let mut places = places;
    places.find_map(|(group, block_size, offset)| {
        let superblock = read(volume, group, offset)?;
        (superblock.block_size == block_size).then(|| Backup {
            kind: superblock.kind(),
            primary: OFFSET,
            offset,
            block_size,
        })
    })
}

/// Reads the backup of a group, if there is a valid one whose file system fits.
fn read(volume: &Volume, group: u64, offset: u64) -> Option<Superblock> {
    let bytes = volume.read(offset, SIZE).ok()?;
    let superblock = Superblock::parse(&bytes).ok()??;
    let is_of_group = le16_at(&bytes, GROUP).map(u64::from) == Some(group);
    let is_in_place = superblock.group_start(group).checked_mul(superblock.block_size)? == offset;
    let fits = superblock.blocks.checked_mul(superblock.block_size)? <= volume.size();
    let has_checksum = superblock.ro_compat(ro_compat::METADATA_CSUM);
    let matches = !has_checksum || Check::superblock(&bytes).is_some_and(|it| it.is_match());
    (is_of_group && is_in_place && fits && matches).then_some(superblock)
}

/// Groups with backups: 1, and the first powers of 3, 5 and 7.
const GROUPS: [u64; 7] = [1, 3, 5, 7, 9, 25, 27];

const MAX_BLOCK_LOG: u32 = 6;

/// Blocks of a cluster by default.
const CLUSTER_BLOCKS: u64 = 16;

/// Place of the number of the group.
const GROUP: usize = 0x5a;
