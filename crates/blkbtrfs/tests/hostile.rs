//! Hostile file systems with valid checksums and invalid content.

#![allow(missing_docs, reason = "a test program")]

mod common;

use std::collections::HashSet;
use std::sync::Arc;

use blkbtrfs::{BlockDefect, Category, Finding, Parent, Problem};
use common::{BLOCK, Disk, Verdict, u64_at};

const HEADER: usize = 0x65;
const POINTER: usize = 0x21;
const ITEM: usize = 0x19;
const EXTENT_TREE: u64 = 2;
const CHUNK_TREE: u64 = 3;
const FS_TREE: u64 = 5;
const CHECKSUM_TREE: u64 = 7;

fn put(bytes: &mut [u8], offset: usize, value: u64) {
    bytes[offset..][..8].copy_from_slice(&value.to_le_bytes());
}

fn refused(verdict: Verdict) -> String {
    let message = verdict.expect_err("this is not to be read");
    assert!(!message.chars().any(char::is_control), "{message}");
    message
}

/// Returns the only defect of a tree block in a verdict.
fn defect(verdict: Verdict) -> BlockDefect {
    let (summary, findings) = verdict.unwrap();
    assert!(!summary.is_clean());
    let defects: Vec<_> = findings
        .iter()
        .filter_map(|finding| match &finding.problem {
            Problem::Block(defect) => Some(defect.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(defects.len(), 1, "{findings:?}");
    defects[0].clone()
}

#[test]
fn real_file_system_is_clean() {
    if common::lacks_mkfs() {
        return;
    }
    for options in [&["--mixed", "-b", "16M"][..], &["-m", "dup", "-b", "45M"]] {
        let (summary, findings) = Disk::real(options).verify().unwrap();
        assert!(summary.is_clean() && summary.is_complete(), "{findings:?}");
        assert!(summary.verified.data_bytes >= 150 * 8192);
        assert_eq!(summary.used.unwrap().unprotected.total(), 0);
    }
}

#[test]
fn more_items_than_fit() {
    if common::lacks_mkfs() {
        return;
    }
    let mut disk = Disk::mixed();
    let leaf = disk.block(FS_TREE, 0);
    disk.change_block(leaf, |bytes| bytes[0x60..0x64].fill(0xff));
    assert!(matches!(defect(disk.verify()), BlockDefect::Structure(_)));
}

#[test]
fn items_past_the_leaf() {
    if common::lacks_mkfs() {
        return;
    }
    for value in [u32::MAX, BLOCK as u32, 5000] {
        for field in [Key::OFFSET, Key::LENGTH] {
            let mut disk = Disk::mixed();
            let leaf = disk.block(CHECKSUM_TREE, 0);
            disk.change_block(leaf, |bytes| {
                bytes[HEADER + field..][..4].copy_from_slice(&value.to_le_bytes());
            });
            assert!(matches!(defect(disk.verify()), BlockDefect::Structure(_)));
        }
    }
}

struct Key;

impl Key {
    const OFFSET: usize = 17;
    const LENGTH: usize = 21;
}

#[test]
fn a_node_that_leads_to_itself() {
    if common::lacks_mkfs() {
        return;
    }
    let mut disk = Disk::mixed();
    let node = disk.block(FS_TREE, 1);
    let (logical, second) = (node.logical, HEADER + POINTER + 17);
    disk.change_block(node, |bytes| put(bytes, second, logical));
    assert_wrong_reference(&disk, logical, node.logical, 1);
}

/// Asserts that the reference from `slot` of `parent` to `logical` is reported as wrong.
fn assert_wrong_reference(disk: &Disk, logical: u64, parent: u64, slot: u32) {
    let (summary, findings) = disk.verify().unwrap();
    assert!(!summary.is_clean() && !summary.is_complete(), "{summary:?}");
    let parent = Some(Parent::Node { logical: parent, slot });
    let is_found = |it: &Finding| it.logical == Some(logical) && it.parent == parent;
    assert!(findings.iter().any(is_found), "{findings:?}");
}

#[test]
fn node_with_all_pointers_to_one_leaf() {
    if common::lacks_mkfs() {
        return;
    }
    let mut disk = Disk::mixed();
    let node = disk.block(FS_TREE, 1);
    let first = u64_at(&disk.bytes[node.physical..], HEADER + 17);
    disk.change_block(node, |bytes| {
        for index in 0..node.count as usize {
            put(bytes, HEADER + index * POINTER + 17, first);
        }
    });
    for slot in 1..node.count {
        assert_wrong_reference(&disk, first, node.logical, slot);
    }
}

/// A wrong reference that comes first hides nothing from the correct one.
#[test]
fn a_wrong_reference_before_the_right_one() {
    if common::lacks_mkfs() {
        return;
    }
    let mut disk = Disk::mixed();
    let node = disk.block(FS_TREE, 1);
    let clean = disk.verify().unwrap().0;
    let last =
        u64_at(&disk.bytes[node.physical..], HEADER + (node.count as usize - 1) * POINTER + 17);
    disk.change_block(node, |bytes| put(bytes, HEADER + 17, last));
    assert_wrong_reference(&disk, last, node.logical, 0);
    let summary = disk.verify().unwrap().0;
    // The correct reference is followed, and the extent tree lists the blocks that are not reached.
    assert!(summary.verified.tree_blocks >= clean.verified.tree_blocks);
    assert_eq!(summary.verified.data_bytes, clean.verified.data_bytes);
}

#[test]
fn a_leaf_of_another_tree() {
    if common::lacks_mkfs() {
        return;
    }
    let mut disk = Disk::mixed();
    let leaf = disk.block(CHECKSUM_TREE, 0);
    disk.change_block(leaf, |bytes| put(bytes, 0x58, 2));
    assert!(matches!(defect(disk.verify()), BlockDefect::Owner { expected: 7, found: 2 }));
}

#[test]
fn an_older_block() {
    if common::lacks_mkfs() {
        return;
    }
    let mut disk = Disk::mixed();
    let leaf = disk.block(FS_TREE, 0);
    disk.change_block(leaf, |bytes| put(bytes, 0x50, 1));
    assert!(matches!(defect(disk.verify()), BlockDefect::Generation { found: 1, .. }));
}

#[test]
fn first_key_differs_from_the_parent() {
    if common::lacks_mkfs() {
        return;
    }
    let mut disk = Disk::mixed();
    let leaf = disk.block(FS_TREE, 0);
    disk.change_block(leaf, |bytes| bytes[HEADER] ^= 1);
    let found = defect(disk.verify());
    assert!(matches!(found, BlockDefect::FirstKey | BlockDefect::Structure(_)), "{found:?}");
}

/// Returns the chunk items of the disk, as offsets in the leaf of the chunk tree.
fn chunk_items(disk: &Disk) -> (common::Block, Vec<(usize, usize)>) {
    let leaf = disk.block(CHUNK_TREE, 0);
    let bytes = &disk.bytes[leaf.physical..][..BLOCK];
    let items = (0..leaf.count as usize).filter_map(|index| {
        let item = HEADER + index * ITEM;
        let data = HEADER + u64_at(bytes, item + 17) as u32 as usize;
        (bytes[item + 8] == 228).then_some((item, data))
    });
    let items = items.collect();
    (leaf, items)
}

#[test]
fn chunks_that_overlap() {
    if common::lacks_mkfs() {
        return;
    }
    let mut disk = Disk::mixed();
    let (leaf, items) = chunk_items(&disk);
    disk.change_block(leaf, |bytes| {
        let length = u64_at(bytes, items[0].1);
        put(bytes, items[0].1, length + (64 << 20));
    });
    let message = refused(disk.verify());
    // The first chunk holds the superblock, which has its real length.
    assert!(message.contains("overlaps") && message.contains("logical"), "{message}");
}

#[test]
fn chunks_that_overflow() {
    if common::lacks_mkfs() {
        return;
    }
    let cases: [(usize, u64, &str); 7] = [
        (0, u64::MAX - 4095, "length"),
        (0, 0, "length"),
        (0, 1000, "length"),
        (0x10, 4096, "stripes of 4096 bytes"),
        (0x10, 0, "stripes of 0 bytes"),
        (0x18, 0x7f8 | 1, "more than one profile"),
        (0x38, u64::MAX - 100, "lies at"),
    ];
    for (field, value, expected) in cases {
        let mut disk = Disk::mixed();
        let (leaf, items) = chunk_items(&disk);
        let last = items[items.len() - 1].1;
        disk.change_block(leaf, |bytes| put(bytes, last + field, value));
        let message = refused(disk.verify());
        assert!(message.contains(expected) && message.contains("logical"), "{field}: {message}");
    }
}

#[test]
fn too_many_stripes() {
    if common::lacks_mkfs() {
        return;
    }
    for count in [0u16, 2, u16::MAX] {
        let mut disk = Disk::mixed();
        let (leaf, items) = chunk_items(&disk);
        let last = items[items.len() - 1].1;
        disk.change_block(leaf, |bytes| {
            bytes[last + 0x2c..][..2].copy_from_slice(&count.to_le_bytes());
        });
        assert!(refused(disk.verify()).contains("stripes"));
    }
}

#[test]
fn chunks_past_the_end_of_the_device() {
    if common::lacks_mkfs() {
        return;
    }
    let mut disk = Disk::mixed();
    let (leaf, items) = chunk_items(&disk);
    disk.change_block(leaf, |bytes| {
        for (_, chunk) in &items[1..] {
            put(bytes, chunk + 0x38, 1 << 40);
        }
    });
    match disk.verify() {
        Err(message) => assert!(message.contains("ends before it"), "{message}"),
        Ok((summary, _)) => assert!(summary.count(Category::Read) > 0),
    }
}

#[test]
fn invalid_superblocks() {
    if common::lacks_mkfs() {
        return;
    }
    let cases: [(usize, u64, usize, &str); 8] = [
        (0x90, 100, 4, "sectors of 100 bytes"),
        (0x90, 1 << 31, 4, "sectors of 2147483648 bytes"),
        (0x94, 1 << 30, 4, "tree blocks of 1073741824 bytes"),
        (0x94, 0, 4, "tree blocks of 0 bytes"),
        (0xa0, 4000, 4, "system chunks"),
        (0xa0, 10, 4, "system chunks"),
        (0xc6, 8, 1, "level 8"),
        (0x58, 1234, 8, "1234"),
    ];
    for (field, value, size, expected) in cases {
        let mut disk = Disk::mixed();
        disk.change_superblock(|bytes| {
            bytes[field..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
        });
        let message = refused(disk.verify());
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn unknown_features_are_refused_by_name() {
    if common::lacks_mkfs() {
        return;
    }
    let cases = [
        (12, "zoned"),
        (13, "extent_tree_v2"),
        (14, "raid_stripe_tree"),
        (45, "the unknown incompatible feature 45"),
    ];
    for (bit, name) in cases {
        let mut disk = Disk::mixed();
        disk.change_superblock(|bytes| {
            let flags = u64_at(bytes, 0xbc);
            put(bytes, 0xbc, flags | 1 << bit);
        });
        let message = refused(disk.verify());
        assert!(message.contains(name) && message.ends_with("is not supported"), "{message}");
    }
    let mut disk = Disk::mixed();
    disk.change_superblock(|bytes| bytes[0xc4] = 9);
    assert!(refused(disk.verify()).contains("checksum type 9"));
}

#[test]
fn blocks_below_a_lost_one_are_found() {
    if common::lacks_mkfs() {
        return;
    }
    let mut disk = Disk::mixed();
    let (node, leaf) = (disk.block(FS_TREE, 1), disk.block(FS_TREE, 0));
    let clean = disk.verify().unwrap().0;
    for block in [node, leaf] {
        Arc::make_mut(&mut disk.bytes)[block.physical + 2000] ^= 1;
    }
    let (summary, findings) = disk.verify().unwrap();
    let found: HashSet<_> = findings.iter().filter_map(|finding| finding.logical).collect();
    assert_eq!(found, HashSet::from([node.logical, leaf.logical]));
    assert_eq!(summary.verified.tree_blocks, clean.verified.tree_blocks);
    assert_eq!(summary.verified.data_bytes, clean.verified.data_bytes);
}

#[test]
fn data_of_a_lost_checksum_tree() {
    if common::lacks_mkfs() {
        return;
    }
    let mut disk = Disk::mixed();
    let root = disk.block(CHECKSUM_TREE, 0);
    Arc::make_mut(&mut disk.bytes)[root.physical + 2000] ^= 1;
    let (summary, findings) = disk.verify().unwrap();
    assert_eq!((findings.len(), summary.lost_blocks), (1, 1));
    // Without the checksum tree, nothing shows which data had checksums.
    assert_eq!(summary.used, None);
}

#[test]
fn extents_longer_than_their_chunk() {
    if common::lacks_mkfs() {
        return;
    }
    const EXTENT: u8 = 168;
    let mut disk = Disk::mixed();
    for leaf in disk.blocks().into_iter().filter(|it| (it.owner, it.level) == (EXTENT_TREE, 0)) {
        disk.change_block(leaf, |bytes| {
            // The first key is also in the parent.
            for item in (1..leaf.count as usize).map(|index| HEADER + index * ITEM) {
                if bytes[item + 8] == EXTENT {
                    put(bytes, item + 9, 1 << 63);
                }
            }
        });
    }
    let (summary, findings) = disk.verify().unwrap();
    assert!(summary.count(Category::TreeItem) > 0 && !summary.compared);
    assert!(findings.iter().all(|it| it.category() == Category::TreeItem), "{findings:?}");
}

#[test]
fn truncated() {
    if common::lacks_mkfs() {
        return;
    }
    for size in [0, 100, 64 << 10, 68 << 10, 1 << 20, 5 << 20, 15 << 20] {
        let mut disk = Disk::mixed();
        Arc::make_mut(&mut disk.bytes).truncate(size);
        match disk.verify() {
            Err(message) => assert!(!message.contains('\n'), "{message}"),
            Ok((summary, _)) => assert!(!summary.is_clean(), "{size}"),
        }
    }
}

/// Changes a few random bytes of random blocks, and updates their checksums.
#[test]
fn random_changes() {
    if common::lacks_mkfs() {
        return;
    }
    let original = Disk::mixed();
    let blocks = original.blocks();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit as u64) as usize
    };
    let mut disk = original.clone();
    for _ in 0..300 {
        let mut changed = Vec::new();
        for _ in 0..1 + random(3) {
            let block = blocks[random(blocks.len())];
            changed.push(block);
            let (offset, value) = match random(4) {
                // Headers of the block and of items, where every byte has a meaning.
                0 => (32 + random(HEADER - 32), random(256)),
                1 | 2 => (HEADER + random(300), [0, 1, 0x7f, 0x80, 0xff, random(256)][random(6)]),
                _ => (BLOCK / 2 + random(BLOCK / 2), random(256)),
            };
            disk.change_block(block, |bytes| bytes[offset] = value as u8);
        }
        if let Err(message) = disk.verify() {
            assert!(!message.chars().any(char::is_control), "{message}");
        }
        for block in changed {
            let range = block.physical..block.physical + BLOCK;
            Arc::make_mut(&mut disk.bytes)[range.clone()].copy_from_slice(&original.bytes[range]);
        }
    }
    assert!(disk.verify().unwrap().0.is_clean());
}
