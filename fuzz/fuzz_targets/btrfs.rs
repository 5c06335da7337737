//! Changes any bytes of tree blocks in real file systems, and repairs the checksums. The result
//! must be a one-line error or findings, without a panic and in bounded time.
//!
//! The input is a list of changes. Each has the block, the kind of place (any byte, a byte of an
//! item or a byte of an item's head), the place and the new value. Without changes a file system
//! must be clean.

#![no_main]

#[path = "../../crates/blkbtrfs/tests/common/mod.rs"]
mod common;

use std::sync::{Arc, LazyLock, Mutex};

use blkbtrfs::Category;
use common::{BLOCK, Block, Disk, HEADER, ITEM, MISSING, RAID5, RAID6, SUPERBLOCK};
use libfuzzer_sys::fuzz_target;

static DISKS: LazyLock<Mutex<Vec<(Disk, Vec<Block>)>>> = LazyLock::new(|| {
    let options: [&[&str]; 2] =
        [&["--mixed", "-b", "16M"], &["-m", "single", "-d", "single", "-b", "20M"]];
    let disks = options.map(|options| Disk::real(&[&["--csum", "crc32c"], options].concat()));
    let [mixed, single] = disks;
    // With one data column the parities equal the data, so all may be at the same place.
    let mut raid5 = single.clone();
    raid5.change_stripes(RAID5, |_, _, offset| vec![(1, offset), (1, offset)]);
    let mut raid6 = single.clone();
    raid6.change_stripes(RAID6, |_, _, offset| {
        vec![(MISSING, offset), (1, offset), (MISSING, offset)]
    });
    let disks = [mixed, single, raid5, raid6];
    Mutex::new(disks.into_iter().map(|disk| (disk.clone(), disk.blocks())).collect())
});

fuzz_target!(|data: &[u8]| {
    let Some((&choice, changes)) = data.split_first() else { return };
    let mut disks = DISKS.lock().unwrap();
    let count = disks.len();
    let (disk, blocks) = &mut disks[usize::from(choice) % count];
    let mut changed = Vec::new();
    for change in changes.chunks_exact(7).take(64) {
        let offset = usize::from(u16::from_le_bytes([change[4], change[5]]));
        let index = usize::from(u16::from_le_bytes([change[0], change[1]]));
        // The last index is the superblock, whose fields are at different offsets.
        let block = blocks.get(index % (blocks.len() + 1));
        let place = block.map_or(SUPERBLOCK, |block| block.physical);
        changed.push((place, disk.bytes[place..][..BLOCK].to_vec()));
        let change_byte = |bytes: &mut [u8]| {
            let at = place_of(bytes, change[2], change[3].into(), offset);
            bytes[at % BLOCK] = change[6];
        };
        match block {
            Some(block) => disk.change_block(*block, change_byte),
            None => disk.change_superblock(change_byte),
        }
    }
    let is_changed = changed.iter().any(|(place, old)| disk.bytes[*place..][..BLOCK] != old[..]);
    match disk.verify() {
        Ok((summary, findings)) => {
            let counted: u64 = Category::ALL.iter().map(|it| summary.count(*it)).sum();
            let blocks: u64 = findings.iter().map(|finding| finding.blocks).sum();
            assert_eq!(counted, blocks);
            // The block groups of the disks with parities still claim a profile without them.
            let is_clean = findings.iter().all(|it| it.category() == Category::TreeItem);
            assert!(is_changed || is_clean, "{findings:?}");
        }
        Err(message) => {
            assert!(is_changed && !message.chars().any(char::is_control), "{message}");
        }
    }
    // Restoring the bytes is cheaper than copying the disk for each input.
    let bytes = Arc::make_mut(&mut disk.bytes);
    for (place, old) in changed.into_iter().rev() {
        bytes[place..][..BLOCK].copy_from_slice(&old);
    }
});

/// Returns the offset of a change in a block.
fn place_of(bytes: &[u8], kind: u8, slot: usize, offset: usize) -> usize {
    let (count, level) = (bytes[0x60], bytes[0x64]);
    if kind % 4 == 0 || count == 0 {
        return offset;
    }
    let slot = slot % usize::from(count);
    let size = if level > 0 { POINTER } else { ITEM };
    let at = HEADER + slot * size;
    if kind % 4 == 1 || level > 0 || at + ITEM > BLOCK {
        return at + offset % size;
    }
    let field = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let (start, length) = (field(at + 17), field(at + 21));
    HEADER.saturating_add(start).saturating_add(offset % length.max(1))
}

const POINTER: usize = 0x21;
