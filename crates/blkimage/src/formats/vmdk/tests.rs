//! Tables, ends and limits of sparse files. Other kinds of disks, and all errors of headers, are tested
//! with files (`tests/formats/test_vmdk.py`).

use super::builder::{Builder, ENTRIES};
use crate::{ErrorKind, ExtentKind, Format, Image, Source};

const GRAIN: u64 = 64 << 10;

/// Sectors of a table of grains of 64 KiB.
const SPAN: u64 = ENTRIES * GRAIN / 512;

#[track_caller]
fn refused(builder: &Builder, kind: ErrorKind, says: &str) {
    let error = builder.open().err().expect("image is refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

/// Fails unless reading the byte is refused as corrupt with this text.
#[track_caller]
fn unreadable(builder: &Builder, guest: u64, says: &str) {
    let error = builder.open().unwrap().read_exact_at(&mut [0], guest).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

fn byte(image: &Image, guest: u64) -> u8 {
    let mut byte = [0xee];
    image.read_exact_at(&mut byte, guest).unwrap();
    byte[0]
}

/// Returns all extents of an image, as kinds and lengths.
fn extents(image: &Image) -> Vec<(ExtentKind, u64)> {
    let (mut found, mut offset) = (Vec::new(), 0);
    while offset < image.size() {
        let extent = image.extent(offset, u64::MAX).unwrap();
        found.push((extent.kind, extent.length));
        offset += extent.length;
    }
    found
}

#[test]
fn grains_and_zeros() {
    let mut builder = Builder::new(4 * SPAN + 100, 128);
    builder.write(0, 1);
    builder.write(GRAIN, 2);
    builder.map(2 * GRAIN, 1);
    builder.write(3 * SPAN * 512 + 5 * GRAIN, 3);
    builder.write(4 * SPAN * 512, 4);
    let image = builder.open().unwrap();
    assert_eq!((image.format(), image.size()), (Format::Vmdk, (4 * SPAN + 100) * 512));
    for (guest, value) in [
        (0, 1),
        (GRAIN - 1, 1),
        (GRAIN, 2),
        (2 * GRAIN, 0),
        (3 * SPAN * 512 + 5 * GRAIN, 3),
        (3 * SPAN * 512 + 6 * GRAIN, 0),
        (image.size() - 1, 4),
    ] {
        assert_eq!(byte(&image, guest), value, "{guest}");
    }
    use ExtentKind::{Data, Zero};
    let rest = SPAN * 512 - 6 * GRAIN;
    assert_eq!(
        extents(&image),
        [
            (Data, 2 * GRAIN),
            (Zero, 3 * SPAN * 512 + 3 * GRAIN),
            (Data, GRAIN),
            (Zero, rest),
            (Data, 100 * 512),
        ]
    );
}

#[test]
fn tables_that_follow_each_other_are_one_run() {
    let tables = 100;
    let mut builder = Builder::new(tables * SPAN, 128);
    // All tables exist and are empty, the redundant ones after the others.
    for copy in [1, 0] {
        for table in 0..tables {
            builder.map_copy(copy, table * SPAN * 512, 0);
        }
    }
    let empty = builder.open().unwrap();
    assert_eq!(extents(&empty), [(ExtentKind::Zero, empty.size())]);
    // Data across the border of two tables, of two groups of tables, and at the end.
    let ends = [1, 32, 33, 64, 100].map(|table| table * SPAN * 512);
    for (i, end) in ends.into_iter().enumerate() {
        builder.write(end - GRAIN, i as u8 + 1);
        if end < tables * SPAN * 512 {
            builder.write(end, i as u8 + 101);
        }
    }
    let image = builder.open().unwrap();
    for (i, end) in ends.into_iter().enumerate() {
        assert_eq!(byte(&image, end - 1), i as u8 + 1);
        if end < image.size() {
            assert_eq!(byte(&image, end), i as u8 + 101);
            assert_eq!(image.extent(end - GRAIN, u64::MAX).unwrap().length, 2 * GRAIN);
        }
    }
}

#[test]
fn a_large_disk_without_tables() {
    let mut builder = Builder::new(1 << 36, 128);
    let (last, middle) = ((1 << 45) - GRAIN, (1 << 44) + GRAIN);
    builder.write(last, 7);
    builder.write(middle, 8);
    let image = builder.open().unwrap();
    let lengths: Vec<_> = extents(&image).into_iter().map(|extent| extent.1).collect();
    assert_eq!(lengths.iter().sum::<u64>(), 1 << 45);
    assert!(lengths.len() < 10, "{lengths:?}");
    assert_eq!((byte(&image, last), byte(&image, middle)), (7, 8));
}

#[test]
fn copies_of_the_tables_that_differ() {
    let mut builder = Builder::new(2 * SPAN, 128);
    builder.write(GRAIN, 1);
    builder.map_copy(0, 2 * GRAIN, 1);
    builder.map_copy(1, 3 * GRAIN, 1);
    builder.map_copy(1, SPAN * 512, 0);
    let image = builder.open().unwrap();
    assert_eq!((byte(&image, 0), byte(&image, GRAIN)), (0, 1));
    for guest in [2 * GRAIN, 3 * GRAIN, SPAN * 512, 2 * SPAN * 512 - 1] {
        unreadable(&builder, guest, "two copies of its grain tables differ");
        assert!(image.extent(guest, 1).is_err());
    }
    // Without its flag or its offset, the redundant copy is not read.
    builder.put32(8, 1 | 4);
    assert_eq!(byte(&builder.open().unwrap(), 3 * GRAIN), 0);
    builder.put32(8, 1 | 2 | 4);
    builder.put64(48, 0);
    assert_eq!(byte(&builder.open().unwrap(), 3 * GRAIN), 0);
}

#[test]
fn entries_past_the_end() {
    let mut builder = Builder::new(SPAN, 128);
    builder.map(0, 0);
    builder.write(0, 1);
    let end = (builder.bytes.len() / 512) as u32;
    for entry in [end, end - 127, u32::MAX] {
        builder.map(GRAIN, entry);
        unreadable(&builder, 2 * GRAIN - 1, "past the end");
    }
    builder.map(GRAIN, end - 128);
    assert_eq!(byte(&builder.open().unwrap(), 2 * GRAIN - 1), 1);
    for copy in [0, 1] {
        builder.put32(builder.directory(copy), end - 3);
    }
    unreadable(&builder, 0, "past the end");
}

#[test]
fn the_last_grain_may_be_cut_off_behind_the_disk() {
    let mut builder = Builder::new(129, 128);
    builder.map(0, 0);
    let at = builder.write(GRAIN, 5);
    builder.bytes.truncate(at as usize + 512);
    assert_eq!(byte(&builder.open().unwrap(), GRAIN + 511), 5);
    builder.bytes.truncate(at as usize + 511);
    unreadable(&builder, GRAIN + 511, "past the end");
}

#[test]
fn zero_entries_without_their_flag() {
    let mut builder = Builder::new(SPAN, 128);
    builder.map(0, 1);
    assert_eq!(byte(&builder.open().unwrap(), 0), 0);
    builder.put32(8, 1 | 2);
    unreadable(&builder, 0, "data in the header");
}

#[test]
fn compressed_grains() {
    let mut builder = Builder::compressed(3 * 128 + 1, 128);
    builder.write(2 * GRAIN, 3);
    builder.write(0, 1);
    builder.write_compressed(3 * GRAIN, 3 * 128, &[9; 512]);
    let image = builder.open().unwrap();
    let mut all = vec![0xee; image.size() as usize];
    image.read_exact_at(&mut all, 0).unwrap();
    let expected = [vec![1; 65536], vec![0; 65536], vec![3; 65536], vec![9; 512]].concat();
    assert!(all == expected);
    assert_eq!(image.granularity(), GRAIN);
    // In pieces, from both ends.
    for guest in (0..image.size()).step_by(10_007).chain((0..image.size()).rev().step_by(9_999)) {
        assert_eq!(byte(&image, guest), expected[guest as usize], "{guest}");
    }
}

#[test]
fn compressed_grains_with_wrong_markers() {
    let mut builder = Builder::compressed(256, 128);
    builder.map(0, 0);
    let at = builder.write(GRAIN, 1);
    let good = builder.bytes.clone();
    for sector in [0, 129, 1 << 55, u64::MAX] {
        builder.put64(at, sector);
        unreadable(&builder, GRAIN + 5, "is marked as the grain of sector");
    }
    builder.bytes.clone_from(&good);
    for length in [0, 2 * 65536 - 11, u32::MAX] {
        builder.put32(at + 8, length);
        unreadable(&builder, GRAIN, "impossible length");
    }
    builder.put32(at + 8, 65536);
    unreadable(&builder, GRAIN, "past the end");
    builder.put32(at + 8, 20);
    unreadable(&builder, GRAIN, "cannot be decompressed");
    builder.bytes.clone_from(&good);
    builder.bytes.truncate(at as usize + 11);
    unreadable(&builder, GRAIN, "past the end");
}

#[test]
fn compressed_grains_of_the_wrong_size() {
    for size in [1, 65535, 65537, 200_000] {
        let mut builder = Builder::compressed(256, 128);
        builder.write_compressed(0, 0, &vec![1; size]);
        unreadable(&builder, 0, "cannot be decompressed");
    }
    let builder = Builder::compressed(4097, 4097);
    refused(&builder, ErrorKind::Unsupported, "more than 4096 sectors");
    assert!(Builder::compressed(4096, 4096).open().is_ok());
}

#[test]
fn directory_larger_than_any_disk_needs() {
    let mut builder = Builder::new(SPAN, 128);
    for capacity in [(32 << 20) * SPAN + 1, 1 << 54, u64::MAX] {
        builder.put64(12, capacity);
        refused(&builder, ErrorKind::Corrupt, "impossible sizes");
    }
    builder.put64(12, (32 << 20) * SPAN);
    refused(&builder, ErrorKind::Corrupt, "grain directory lies past the end");
}

#[test]
fn parents_are_named_by_path_only() {
    let mut builder = Builder::new(SPAN, 128);
    let parent = "CID=1\nparentCID=2\nparentFileNameHint=\"base.vmdk\"";
    builder.describe(SPAN, parent);
    refused(&builder, ErrorKind::Reference, "names the backing file \"base.vmdk\"");
    builder.describe(SPAN, "CID=1\nparentCID=2");
    refused(&builder, ErrorKind::Corrupt, "it does not name");
}
