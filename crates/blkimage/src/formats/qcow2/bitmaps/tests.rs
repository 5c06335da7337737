//! A test for each rule of the bitmap directory, named after the violation.

use crate::ErrorKind;
use crate::formats::qcow2::builder::Builder;

/// An image of 1 GiB with two bitmaps of 16 KiB granularity, and the offsets of its parts.
struct Bitmaps {
    builder: Builder,
    directory: u64,
    table: u64,
}

const EXTENSION: u64 = 104;
const SECOND: u64 = 32;

fn bitmaps() -> Bitmaps {
    let mut builder = Builder::new(16, 1 << 30);
    let table = builder.append(&[0; 8]);
    let mut directory = Vec::new();
    for name in [b"a", b"b"] {
        directory.extend(table.to_be_bytes());
        directory.extend(1_u32.to_be_bytes());
        directory.extend(0_u32.to_be_bytes());
        directory.extend([1, 14, 0, 1, 0, 0, 0, 0]);
        directory.extend([name[0], 0, 0, 0, 0, 0, 0, 0]);
    }
    let size = directory.len() as u64;
    let directory = builder.append(&directory);
    let extension = [2_u64 << 32, size, directory].map(u64::to_be_bytes).concat();
    builder.extension(EXTENSION, 0x2385_2875, &extension);
    builder.put64(88, 1);
    Bitmaps { builder, directory, table }
}

#[track_caller]
fn refused(builder: &Builder, says: &str) {
    let error = builder.open().err().expect("image is refused");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn healthy() {
    bitmaps().builder.open().unwrap();
}

#[test]
fn bitmaps_without_the_autoclear_bit_are_ignored() {
    let mut bitmaps = bitmaps();
    bitmaps.builder.put64(88, 0);
    bitmaps.builder.put32(EXTENSION + 8, 0);
    assert!(bitmaps.builder.open().is_ok());
}

#[test]
fn extension_with_a_wrong_length() {
    for length in [16, 32] {
        let mut bitmaps = bitmaps();
        bitmaps.builder.put64(88, 0);
        bitmaps.builder.put32(EXTENSION + 4, length);
        refused(&bitmaps.builder, "extension");
    }
}

#[test]
fn extension() {
    for (at, value, says) in [
        (8, 0, "number"),
        (8, 65_536, "number"),
        (8, 1, "more entries"),
        (8, 3, "within an entry"),
        (12, 1, "reserved"),
        (20, 0, "directory is not between"),
        (16, 1, "directory is not between"),
        (20, 63, "within an entry"),
        (20, 72, "more entries"),
        (28, 512, "aligned"),
        (24, 1 << 24, "past the end"),
    ] {
        let mut bitmaps = bitmaps();
        bitmaps.builder.put32(EXTENSION + at, value);
        refused(&bitmaps.builder, says);
    }
}

#[test]
fn entry() {
    for (at, bytes, says) in [
        (16, &[0][..], "type"),
        (12, &[0, 0, 0, 4], "flags"),
        (17, &[8], "granularity"),
        (17, &[32], "granularity"),
        (18, &[0, 0], "name"),
        (20, &[0, 0, 0, 8], "extra data"),
        (0, &[0; 8], "table is missing"),
        (6, &[2], "aligned"),
        (2, &[1], "past the end"),
        (8, &[0; 4], "empty"),
        (8, &[9, 0, 0, 0], "too large"),
        (8, &[0, 0, 0, 2], "asks for"),
        (24, b"a", "only one"),
    ] {
        let mut bitmaps = bitmaps();
        bitmaps.builder.put(bitmaps.directory + SECOND + at, bytes);
        refused(&bitmaps.builder, says);
    }
}

#[test]
fn table() {
    for (entry, is_good) in [
        (1, true),
        (0x10000, true),
        (0x10001, false),
        (0x8000, false),
        (2, false),
        (1 << 56, false),
    ] {
        let mut bitmaps = bitmaps();
        bitmaps.builder.put64(bitmaps.table, entry);
        match is_good {
            true => assert!(bitmaps.builder.open().is_ok()),
            false => refused(&bitmaps.builder, "entry of its table"),
        }
    }
}

#[test]
fn tables_of_bitmaps_in_use_are_not_read() {
    let mut bitmaps = bitmaps();
    bitmaps.builder.put64(bitmaps.table, 2);
    for entry in [0, SECOND] {
        bitmaps.builder.put32(bitmaps.directory + entry + 12, 1);
        bitmaps.builder.put32(bitmaps.directory + entry + 8, 5);
    }
    assert!(bitmaps.builder.open().is_ok());
}
