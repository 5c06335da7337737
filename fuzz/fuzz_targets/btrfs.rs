//! Real file systems with any bytes of their tree blocks changed, and right checksums all the same:
//! an error of one line, or findings; never a panic, and never long.
//!
//! The input is a list of changes: which block, where in it, what to. Nothing changed is clean.

#![no_main]

#[path = "../../crates/blkbtrfs/tests/common/mod.rs"]
mod common;

use std::sync::LazyLock;

use common::{BLOCK, Block, Disk};
use libfuzzer_sys::fuzz_target;

static DISKS: LazyLock<Vec<(Disk, Vec<Block>)>> = LazyLock::new(|| {
    let options: [&[&str]; 2] =
        [&["--mixed", "-b", "16M"], &["-m", "single", "-d", "single", "-b", "20M"]];
    let disks = options.map(|options| Disk::real(&[&["--csum", "crc32c"], options].concat()));
    disks.into_iter().map(|disk| (disk.clone(), disk.blocks())).collect()
});

fuzz_target!(|data: &[u8]| {
    let Some((&choice, changes)) = data.split_first() else { return };
    let (original, blocks) = &DISKS[usize::from(choice) % DISKS.len()];
    let mut disk = original.clone();
    let mut is_changed = false;
    for change in changes.chunks_exact(5).take(64) {
        let offset = usize::from(u16::from_le_bytes([change[2], change[3]])) % BLOCK;
        let index = usize::from(u16::from_le_bytes([change[0], change[1]]));
        // The last index is the superblock, whose fields are at other places.
        let change_byte = |bytes: &mut [u8]| {
            is_changed |= bytes[offset] != change[4];
            bytes[offset] = change[4];
        };
        match blocks.get(index % (blocks.len() + 1)) {
            Some(block) => disk.change_block(*block, change_byte),
            None => disk.change_superblock(change_byte),
        }
    }
    match disk.verify() {
        Ok((summary, findings)) => {
            let counted: u64 = summary.findings.iter().sum();
            assert_eq!(counted, findings.len() as u64);
            assert!(is_changed || summary.is_clean(), "{findings:?}");
        }
        Err(message) => {
            assert!(is_changed && !message.chars().any(char::is_control), "{message}");
        }
    }
});
