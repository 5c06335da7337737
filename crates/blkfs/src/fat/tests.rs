//! Volumes of FAT12, made byte by byte: 1 reserved sector, 2 FATs of a sector, 16 root entries, 60 clusters of a sector.

use super::testing::{Seen, open, put, walk};
use crate::kind::Kind;
use crate::visitor::Owner;

const FAT: usize = 512;
const ROOT: usize = 3 * 512;
const DATA: usize = 4 * 512;

fn volume() -> Vec<u8> {
    let mut image = vec![0; 65 * 512];
    put(&mut image, 0, b"\xeb\x3c\x90mkfs.fat\0\x02\x01\x01\0\x02\x10\0\x41\0\xf8\x01\0");
    put(&mut image, 0x26, b"\x29\x78\x56\x34\x12NO NAME    FAT12   ");
    put(&mut image, 510, &[0x55, 0xaa]);
    set(&mut image, 0, 0xff8);
    set(&mut image, 1, 0xfff);
    image
}

/// Sets the entry of a cluster in both copies.
fn set(image: &mut [u8], cluster: usize, value: u16) {
    for copy in [FAT, FAT + 512] {
        let pair = &mut image[copy + cluster * 3 / 2..][..2];
        let old = u16::from_le_bytes([pair[0], pair[1]]);
        let new =
            if cluster.is_multiple_of(2) { old & 0xf000 | value } else { old & 0xf | value << 4 };
        pair.copy_from_slice(&new.to_le_bytes());
    }
}

fn chain(image: &mut [u8], clusters: &[u16]) {
    for pair in clusters.windows(2) {
        set(image, pair[0].into(), pair[1]);
    }
    set(image, clusters[clusters.len() - 1].into(), 0xfff);
}

fn entry(name: &[u8; 11], attributes: u8, first: u16, size: u32) -> [u8; 32] {
    let mut entry = [0; 32];
    put(&mut entry, 0, name);
    entry[11] = attributes;
    put(&mut entry, 26, &first.to_le_bytes());
    put(&mut entry, 28, &size.to_le_bytes());
    entry
}

/// Returns the entries of a long name of one part, and the short one.
fn long(name: &str, short: &[u8; 11], first: u16, size: u32) -> [u8; 64] {
    let mut units: Vec<u16> = name.encode_utf16().chain([0]).collect();
    units.resize(13, 0xffff);
    let mut entries = [0; 64];
    entries[0] = 0x41;
    entries[11] = 0x0f;
    entries[13] = short.iter().fold(0_u8, |sum, byte| sum.rotate_right(1).wrapping_add(*byte));
    for (unit, at) in units.iter().zip([1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30]) {
        put(&mut entries, at, &unit.to_le_bytes());
    }
    put(&mut entries, 32, &entry(short, 0x20, first, size));
    entries
}

fn names(seen: &Seen) -> Vec<&str> {
    seen.names.iter().map(|(_, _, name)| name.as_str()).collect()
}

#[test]
fn owners_and_names() {
    let mut image = volume();
    put(&mut image, ROOT, &entry(b"A LABEL    ", 0x08, 0, 0));
    put(&mut image, ROOT + 32, &long("Größe.txt", b"GRE~1   TXT", 2, 1000));
    put(&mut image, ROOT + 96, &entry(b"\xe5ELETED TXT", 0x20, 9, 5));
    let mut lower = entry(b"LOWER   TXT", 0x20, 0, 0);
    lower[12] = 0x18;
    put(&mut image, ROOT + 128, &lower);
    put(&mut image, ROOT + 160, &entry(b"DIR        ", 0x10, 4, 0));
    chain(&mut image, &[2, 5]);
    chain(&mut image, &[4]);
    chain(&mut image, &[6]);
    chain(&mut image, &[8, 9]);
    set(&mut image, 7, 0xff7);
    let directory = DATA + 2 * 512;
    put(&mut image, directory, &entry(b".          ", 0x10, 4, 0));
    put(&mut image, directory + 32, &entry(b"..         ", 0x10, 0, 0));
    put(&mut image, directory + 64, &entry(b"\x05B      C  ", 0x20, 6, 512));

    let file_system = open(&image).unwrap().unwrap();
    assert_eq!((file_system.kind(), file_system.size()), (Kind::Fat12, 65 * 512));
    assert_eq!(file_system.label().unwrap(), b"A LABEL");
    assert_eq!(file_system.uuid().unwrap(), "1234-5678");
    let seen = walk(&image);
    assert_eq!((seen.wrong(), seen.damaged()), (vec![], vec![]));
    assert_eq!(seen.matched.iter().collect::<Vec<_>>(), [(&"FAT copy", &1), (&"long name", &1)]);
    // Numbers count the entries from the root directory on, the first one is 3.
    let (file, folder, inner) = (5, 8, (directory + 64 - ROOT) as u64 / 32 + 3);
    let metadata = |structure| Owner::Metadata { structure, object: None };
    let expected = [
        (0, 1, metadata("boot sector")),
        (1, 2, metadata("FAT")),
        (3, 1, Owner::Directory { object: 2 }),
        (4, 1, Owner::File { object: file, offset: 0 }),
        (5, 1, Owner::Free),
        (6, 1, Owner::Directory { object: folder }),
        (7, 1, Owner::File { object: file, offset: 512 }),
        (8, 1, Owner::File { object: inner, offset: 0 }),
        (9, 1, metadata("bad cluster")),
        (12, 53, Owner::Free),
    ];
    assert_eq!(seen.sectors(), expected);
    assert_eq!(names(&seen), ["Größe.txt", "lower.txt", "DIR", "\u{fffd}B.C"]);
    assert_eq!(seen.names[3], (folder, inner, "\u{fffd}B.C".to_owned()));
}

#[test]
fn long_names_and_their_checksums() {
    let mut image = volume();
    // A name whose checksum is wrong, a name without a file, a file with parts of another name, and a whole one.
    let mut wrong = long("wrong", b"WRONG      ", 0, 0);
    wrong[13] ^= 1;
    put(&mut image, ROOT, &wrong);
    put(&mut image, ROOT + 64, &long("orphan", b"ORPHAN     ", 0, 0)[..32]);
    put(&mut image, ROOT + 96, &entry(b"\xe5ELETED    ", 0x20, 0, 0));
    let mut part = long("part", b"PART       ", 0, 0);
    part[0] = 0x42;
    put(&mut image, ROOT + 128, &part);
    put(&mut image, ROOT + 192, &long("whole", b"WHOLE      ", 0, 0));
    let seen = walk(&image);
    assert_eq!(names(&seen), ["WRONG", "PART", "whole"]);
    assert_eq!((seen.wrong(), seen.damaged()), (vec!["long name"], vec![]));
    assert_eq!(seen.mismatches[0].offset, ROOT as u64);
    assert_eq!(seen.matched["long name"], 1);
}

#[test]
fn broken_chains_end() {
    let mut image = volume();
    chain(&mut image, &[2, 3, 4]);
    set(&mut image, 4, 2);
    set(&mut image, 5, 3);
    set(&mut image, 6, 0x123);
    set(&mut image, 7, 8);
    for (index, first) in [2, 5, 6, 7, 1, 0, 63].into_iter().enumerate() {
        let name = *b"FILE0      ";
        put(&mut image, ROOT + 32 * index, &entry(&name, 0x20, first, 1));
    }
    put(&mut image, ROOT + 32 * 7, &entry(b"DIR        ", 0x10, 0, 0));
    let seen = walk(&image);
    let expected = [
        "leads to cluster 2, which is already in use by it or another file, after 3 clusters",
        "leads to cluster 3, which is already in use by it or another file, after 1 clusters",
        "leads to cluster 291, which does not exist, after 1 clusters",
        "leads to cluster 8, which is free, after 1 clusters",
        "begins with cluster 1, which does not exist",
        "has no clusters, but 1 bytes",
        "begins with cluster 63, which does not exist",
        "has no clusters, but is a directory",
    ];
    assert_eq!(seen.damaged(), expected);
    assert_eq!(seen.wrong(), [] as [&str; 0]);
}

#[test]
fn a_file_with_fewer_clusters_than_bytes_and_a_folder_that_is_none() {
    let mut image = volume();
    chain(&mut image, &[2]);
    chain(&mut image, &[3, 4]);
    chain(&mut image, &[5]);
    put(&mut image, ROOT, &entry(b"SHORT      ", 0x20, 2, 513));
    put(&mut image, ROOT + 32, &entry(b"PREPARED   ", 0x20, 3, 1));
    put(&mut image, ROOT + 64, &entry(b"NO FOLDER  ", 0x10, 5, 0));
    put(&mut image, DATA + 3 * 512, b"content that is no directory entry");
    let seen = walk(&image);
    let expected = ["has 513 bytes, but its clusters 512", "begins with another entry than `.`"];
    let mut damaged = seen.damaged();
    damaged.sort_unstable_by_key(|reason| reason.starts_with('b'));
    assert_eq!(damaged, expected);
    assert_eq!(names(&seen), ["SHORT", "PREPARED", "NO FOLDE.R"]);
}

#[test]
fn copies_that_differ() {
    let mut image = volume();
    image[FAT + 512 + 90] ^= 1;
    let seen = walk(&image);
    // Bytes after the last entry do not count.
    assert_eq!(seen.wrong(), ["FAT copy"]);
    assert_eq!(seen.mismatches[0].reason, "1 bytes of FAT 2 differ from FAT 1");
    image[FAT + 512 + 90] ^= 1;
    image[FAT + 512 + 100] ^= 1;
    assert_eq!(walk(&image).wrong(), [] as [&str; 0]);
}

#[test]
fn boot_sectors_of_others_are_not_taken() {
    let image = volume();
    let is_taken = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut image = image.clone();
        change(&mut image);
        open(&image).is_ok_and(|it| it.is_some())
    };
    let without_table = |image: &mut Vec<u8>| image[FAT..FAT + 1024].fill(0);
    assert!(is_taken(&|_| {}));
    assert!(is_taken(&|image| image[0] = 0));
    assert!(is_taken(&|image| image[0x15] = 0));
    assert!(is_taken(&|image| image[510] = 0));
    assert!(is_taken(&|image| put(image, 450, b"\x0c partition")));
    assert!(is_taken(&|image| without_table(image)));
    // The boot loader of a disk with partitions keeps the fields of a file system that was there before.
    assert!(!is_taken(&|image| {
        without_table(image);
        put(image, 450, b"\x0c partition");
    }));
    for (at, name) in [(3, "NTFS    "), (3, "EXFAT   "), (0x36, "HPFS    "), (3, "-FVE-FS-")] {
        assert!(!is_taken(&|image| put(image, at, name.as_bytes())));
    }
    for (at, value) in [(11, 1), (13, 3), (14, 0), (16, 0), (17, 1), (19, 3), (22, 0)] {
        assert!(!is_taken(&|image| image[at] = value), "{at}");
    }
    assert!(open(&[0; 4096]).unwrap().is_none());
    assert!(open(&[0x55; 511]).unwrap().is_none());
}

/// Returns a volume of FAT32: 8 reserved sectors, 2 FATs of a sector, 100 clusters.
fn volume32() -> Vec<u8> {
    let mut image = vec![0; 110 * 512];
    put(&mut image, 0, b"\xeb\x58\x90mkfs.fat\0\x02\x01\x08\0\x02\0\0\x6e\0\xf8");
    put(&mut image, 0x24, b"\x01\0\0\0\0\0\0\0\x02\0\0\0\x01\0\x06\0");
    put(&mut image, 0x42, b"\x29\x78\x56\x34\x12NO NAME    FAT32   ");
    put(&mut image, 510, &[0x55, 0xaa]);
    let boot = image[..512].to_vec();
    put(&mut image, 6 * 512, &boot);
    put(&mut image, 512, b"RRaA");
    put(&mut image, 512 + 484, b"rrAa");
    put(&mut image, 512 + 508, &[0, 0, 0x55, 0xaa]);
    for copy in [8, 9] {
        put(&mut image, copy * 512, b"\xf8\xff\xff\x0f\xff\xff\xff\x0f\xff\xff\xff\x0f");
    }
    image
}

#[test]
fn reserved_sectors_of_fat32() {
    let image = volume32();
    let seen = walk(&image);
    assert_eq!((seen.wrong(), seen.damaged()), (vec![], vec![]));
    assert_eq!(seen.matched.len(), 3);
    let structures: Vec<_> = seen
        .sectors()
        .into_iter()
        .map(|(offset, length, owner)| match owner {
            Owner::Metadata { structure, .. } => (offset, length, structure),
            _ => (offset, length, ""),
        })
        .collect();
    let expected = [
        (0, 1, "boot sector"),
        (1, 1, "FS information sector"),
        (2, 4, "reserved sectors"),
        (6, 1, "backup boot sector"),
        (7, 1, "reserved sectors"),
        (8, 2, "FAT"),
        (10, 1, ""),
        (11, 99, ""),
    ];
    assert_eq!(structures, expected);
    let changed = |at: usize| {
        let mut image = image.clone();
        image[at] ^= 1;
        walk(&image).wrong()
    };
    assert_eq!(changed(512 + 485), ["FS information sector"]);
    assert_eq!(changed(512 + 488), [] as [&str; 0]);
    assert_eq!(changed(6 * 512 + 300), ["backup boot sector"]);
    assert_eq!(changed(0x41), [] as [&str; 0]);
    assert_eq!(changed(9 * 512 + 7), ["FAT copy"]);
    // Without a valid sector, the backup says where everything is.
    assert_eq!(changed(0x0d), ["backup boot sector"]);
    assert_eq!(changed(0x2f), ["backup boot sector"]);
    assert_eq!(changed(0x33), ["backup boot sector"]);
}

#[test]
fn states_and_mirroring() {
    let remarks = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut image = volume32();
        change(&mut image);
        let boot = image[..512].to_vec();
        put(&mut image, 6 * 512, &boot);
        let wrong = walk(&image).wrong();
        (open(&image).unwrap().unwrap().remarks(), wrong)
    };
    assert_eq!(remarks(&|_| {}), (vec![], vec![]));
    let unmounted = vec!["the volume was not unmounted".to_owned()];
    assert_eq!(remarks(&|image| image[0x41] = 1).0, unmounted);
    assert_eq!(remarks(&|image| [8, 9].iter().for_each(|it| image[it * 512 + 7] = 7)).0, unmounted);
    let (remarks, wrong) = remarks(&|image| {
        image[0x28] = 0x81;
        image[8 * 512 + 100] ^= 1;
    });
    assert_eq!((remarks.len(), wrong), (1, vec![]));
}
