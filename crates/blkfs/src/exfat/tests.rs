//! Volumes of exFAT, made byte by byte: a FAT of a sector at sector 24, 64 clusters of a sector from sector 32 on.
//!
//! Cluster 2 has the root directory, 3 the bitmap, 4 the up-case table.

use super::boot::checksum;
use super::entry_set::entries_checksum;
use crate::fat::testing::{Seen, open, put, walk};
use crate::visitor::Owner;

const FAT: usize = 24 * 512;
const HEAP: usize = 32 * 512;
const ROOT: usize = HEAP;
const BITMAP: usize = HEAP + 512;

/// Returns a volume whose root directory has the entries for bitmap and up-case table.
fn volume() -> Vec<u8> {
    let mut image = vec![0; 100 * 512];
    put(&mut image, 0, b"\xeb\x76\x90EXFAT   ");
    put(&mut image, 0x48, &100_u64.to_le_bytes());
    for (at, value) in
        [(0x50, 24), (0x54, 1), (0x58, 32), (0x5c, 64), (0x60, 2), (0x64, 0x1234_5678)]
    {
        put(&mut image, at, &u32::to_le_bytes(value));
    }
    put(&mut image, 0x68, &[0, 1, 0, 0, 9, 0, 1]);
    put(&mut image, 510, &[0x55, 0xaa]);
    seal(&mut image);
    for cluster in [2, 3, 4] {
        link(&mut image, cluster, u32::MAX);
    }
    image[BITMAP] = 0b111;
    // Code units up to 'z' as letters in the upper case, in the compressed form.
    let mut table = vec![0xff, 0xff, 0x61, 0];
    table.extend((b'A'..=b'Z').flat_map(|letter| [letter, 0]));
    put(&mut image, HEAP + 2 * 512, &table);
    let upcase =
        located(0x82, 4, table.len() as u64, &checksum(table.iter().copied()).to_le_bytes());
    put(&mut image, ROOT, &located(0x81, 3, 8, &[]));
    put(&mut image, ROOT + 32, &upcase);
    put(&mut image, ROOT + 64, b"\x83\x02A\0B\0");
    image
}

/// Stores the checksum of the boot region, and makes a backup.
fn seal(image: &mut [u8]) {
    let content = image[..11 * 512].iter().enumerate();
    let content = content.filter(|(at, _)| !matches!(at, 0x6a | 0x6b | 0x70));
    let sum = checksum(content.map(|(_, byte)| *byte)).to_le_bytes();
    (0..128).for_each(|at| put(image, 11 * 512 + 4 * at, &sum));
    image.copy_within(..12 * 512, 12 * 512);
}

fn link(image: &mut [u8], cluster: usize, next: u32) {
    put(image, FAT + 4 * cluster, &next.to_le_bytes());
}

fn located(kind: u8, first: u32, length: u64, sum: &[u8]) -> [u8; 32] {
    let mut entry = [0; 32];
    entry[0] = kind;
    put(&mut entry, 4, sum);
    put(&mut entry, 20, &first.to_le_bytes());
    put(&mut entry, 24, &length.to_le_bytes());
    entry
}

/// Returns the entries of a file with a short name of small letters. Flags: 2 if there is no chain.
fn file(name: &str, attributes: u8, flags: u8, first: u32, length: u64) -> Vec<[u8; 32]> {
    let mut set = [[0; 32]; 3];
    (set[0][0], set[0][1], set[0][4]) = (0x85, 2, attributes);
    set[1] = located(0xc0, first, length, &[]);
    (set[1][1], set[1][3]) = (flags | 1, name.len() as u8);
    put(&mut set[1], 8, &length.to_le_bytes());
    let hash = name
        .to_uppercase()
        .bytes()
        .fold(0_u16, |hash, byte| hash.rotate_right(1).wrapping_add(byte.into()).rotate_right(1));
    put(&mut set[1], 4, &hash.to_le_bytes());
    set[2][0] = 0xc1;
    name.bytes().enumerate().for_each(|(index, byte)| set[2][2 + 2 * index] = byte);
    sign(set.to_vec())
}

/// Stores the number and the checksum of the entries in the first one.
fn sign(mut set: Vec<[u8; 32]>) -> Vec<[u8; 32]> {
    set[0][1] = set.len() as u8 - 1;
    let sum = entries_checksum(&set).to_le_bytes();
    put(&mut set[0], 2, &sum);
    set
}

/// Returns a volume with sets of entries after the sets of [`volume`].
fn with(sets: &[Vec<[u8; 32]>]) -> Vec<u8> {
    let mut image = volume();
    put(&mut image, ROOT + 96, sets.concat().as_flattened());
    image
}

fn allocate(image: &mut [u8], clusters: impl IntoIterator<Item = usize>) {
    clusters.into_iter().for_each(|it| image[BITMAP + (it - 2) / 8] |= 1 << ((it - 2) % 8));
}

fn clean(seen: &Seen) {
    assert_eq!((seen.wrong(), seen.damaged()), (vec![], vec![]));
}

#[test]
fn owners_and_names() {
    let mut image = with(&[
        file("row", 0x20, 2, 5, 1025),
        file("chain", 0x20, 0, 8, 1000),
        file("dir", 0x10, 2, 9, 512),
        file("empty", 0x20, 0, 0, 0),
    ]);
    link(&mut image, 8, 10);
    link(&mut image, 10, u32::MAX);
    link(&mut image, 20, 0xffff_fff7);
    put(&mut image, HEAP + 7 * 512, file("inner", 0x20, 2, 11, 1).as_flattened());
    allocate(&mut image, 5..=12);

    let file_system = open(&image).unwrap().unwrap();
    assert_eq!(file_system.label().unwrap(), b"AB");
    assert_eq!(file_system.uuid().unwrap(), "1234-5678");
    assert_eq!(file_system.remarks(), [] as [&str; 0]);
    let seen = walk(&image);
    clean(&seen);
    assert_eq!(seen.matched["directory entry set"], 5);
    let metadata = |structure| Owner::Metadata { structure, object: None };
    let content = |object, offset| Owner::File { object, offset };
    let expected = [
        (0, 12, metadata("boot region")),
        (12, 12, metadata("backup boot region")),
        (24, 1, metadata("FAT")),
        (25, 7, metadata("reserved sectors")),
        (32, 1, Owner::Directory { object: 2 }),
        (33, 1, metadata("allocation bitmap")),
        (34, 1, metadata("up-case table")),
        (35, 3, content(6, 0)),
        (38, 1, content(9, 0)),
        (39, 1, Owner::Directory { object: 12 }),
        (40, 1, content(9, 512)),
        (41, 1, content(7 * 16 + 3, 0)),
        (43, 7, Owner::Free),
        (50, 1, metadata("bad cluster")),
        (51, 45, Owner::Free),
        (96, 4, metadata("excess space")),
    ];
    assert_eq!(seen.sectors(), expected);
    let mut names: Vec<_> =
        seen.names.iter().map(|(parent, _, name)| (*parent, name.as_str())).collect();
    names.sort_unstable();
    assert_eq!(names, [(2, "chain"), (2, "dir"), (2, "empty"), (2, "row"), (12, "inner")]);
}

#[test]
fn checksums_of_both_boot_regions() {
    let image = volume();
    let changed = |at: usize| {
        let mut image = image.clone();
        image[at] ^= 4;
        walk(&image).wrong()
    };
    let none: [&str; 0] = [];
    assert_eq!([changed(0x6a), changed(0x70), changed(12 * 512 + 0x6b)], [none; 3]);
    assert_eq!(changed(0x71), ["boot region"]);
    assert_eq!(changed(11 * 512 + 400), ["boot region"]);
    assert_eq!(changed(22 * 512), ["backup boot region"]);
    // The backup is taken if the first sector is invalid, or if only its checksum is right.
    assert_eq!(changed(0x6c), ["boot region"]);
    assert_eq!(changed(0x58), ["boot region"]);
    let mut both = image.clone();
    both[0x6c] = 0;
    both[12 * 512 + 0x6c] = 0;
    assert!(open(&both).is_err());
}

#[test]
fn entry_sets_with_wrong_checksums_get_what_is_left() {
    let mut wrong = file("wrong", 0x20, 2, 5, 1024);
    wrong[0][20] ^= 1;
    let mut taken = file("taken", 0x20, 2, 8, 512);
    taken[1][20] = 7;
    let mut torn = file("torn", 0x20, 2, 9, 512);
    torn[2][0] = 0x41;
    let mut image = with(&[wrong, taken, torn, file("good", 0x20, 2, 7, 512)]);
    allocate(&mut image, 5..=9);
    let seen = walk(&image);
    assert_eq!(seen.wrong(), ["directory entry set"; 3]);
    assert_eq!(seen.mismatches[2].reason, "only 2 entries follow each other");
    assert_eq!(seen.damaged(), ["cluster 7 is already in use by another file"]);
    let files: Vec<_> =
        seen.sectors().into_iter().filter(|it| matches!(it.2, Owner::File { .. })).collect();
    let content = |object| Owner::File { object, offset: 0 };
    assert_eq!(files, [(35, 2, content(6)), (37, 1, content(15)), (39, 1, content(12))]);
}

#[test]
fn hashes_of_names_and_the_table_for_them() {
    let mut wrong = file("hash", 0x20, 0, 0, 0);
    wrong[1][4] ^= 1;
    let image = with(&[sign(wrong)]);
    let seen = walk(&image);
    assert_eq!(seen.wrong(), ["directory entry set"]);
    assert!(seen.mismatches[0].reason.starts_with("name hash"));
    let mut image = image;
    image[HEAP + 2 * 512 + 4] ^= 1;
    assert_eq!(walk(&image).wrong(), ["up-case table"]);
}

#[test]
fn entries_of_vendors_and_a_guid() {
    let mut set = file("file", 0x20, 2, 5, 512);
    let mut vendor = located(0xe1, 6, 1000, &[]);
    vendor[1] = 3;
    set.push([0xe0; 32]);
    set.push(vendor);
    let mut guid = [7; 32];
    (guid[0], guid[1]) = (0xa0, 0);
    let guid = sign(vec![guid]);
    let mut image = with(&[vec![[0xa1; 32]], guid, sign(set)]);
    allocate(&mut image, 5..=7);
    let seen = walk(&image);
    clean(&seen);
    assert_eq!(seen.matched["volume GUID"], 1);
    let vendor = Owner::Metadata { structure: "vendor allocation", object: Some(8) };
    assert!(seen.sectors().contains(&(36, 2, vendor)));
    image[ROOT + 128 + 9] ^= 1;
    assert_eq!(walk(&image).wrong(), ["volume GUID"]);
}

#[test]
fn damaged_allocations() {
    let mut valid = file("valid", 0x20, 2, 9, 512);
    valid[1][8] = 1;
    let mut image = with(&[
        file("short", 0x20, 0, 5, 1000),
        file("end", 0x20, 2, 65, 1024),
        file("none", 0x20, 2, 0, 1),
        sign(valid),
    ]);
    link(&mut image, 5, u32::MAX);
    allocate(&mut image, [5, 65]);
    let seen = walk(&image);
    let expected = [
        "has 1 clusters instead of 2",
        "has more clusters than exist",
        "begins with cluster 0, which does not exist",
        "has 512 bytes, of which 513 are valid",
        "cluster 9 is free, but in use by a file",
    ];
    assert_eq!((seen.damaged(), seen.wrong()), (expected.to_vec(), vec![]));
}

/// A chain of the bitmap that other readers do not follow either.
#[test]
fn structures_without_a_chain() {
    let mut image = volume();
    link(&mut image, 3, 0);
    link(&mut image, 4, 77);
    clean(&walk(&image));
    put(&mut image, ROOT + 20, &2_u32.to_le_bytes());
    assert_eq!(walk(&image).damaged()[0], "shares clusters with another structure");
}

#[test]
fn two_tables_of_which_the_second_is_in_use() {
    let mut image = volume();
    put(&mut image, 0x6a, &[3, 0]);
    image[0x6e] = 2;
    seal(&mut image);
    image.copy_within(FAT..FAT + 512, FAT + 512);
    image[FAT..FAT + 512].fill(0xee);
    image[BITMAP] = 0;
    put(&mut image, ROOT + 96, &located(0x81, 5, 8, &[]));
    image[ROOT + 97] = 1;
    put(&mut image, FAT + 512 + 20, &u32::MAX.to_le_bytes());
    image[HEAP + 3 * 512] = 0b1111;
    let seen = walk(&image);
    clean(&seen);
    assert!(seen.sectors().contains(&(36, 60, Owner::Free)));
    let remarks = open(&image).unwrap().unwrap().remarks();
    assert_eq!(remarks.len(), 2);
    assert!(remarks[1].contains("number 2 is in use"));
}
