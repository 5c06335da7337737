//! A test for each rule of the format, named after the rule or its violation.

use std::fs;
use std::path::Path;

use super::builder::*;
use super::log::MAX_LOG;
use super::replay::MAX_DESCRIPTORS;
use super::{KIB, MIB};
use crate::{Error, ErrorKind, ExtentKind, Format, OpenOptions, Source};

/// Fails unless opening is refused with this kind of error and this text.
#[track_caller]
fn refused(builder: &Builder, kind: ErrorKind, says: &str) -> Error {
    let error = builder.open().err().expect("image is refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(says), "{error}");
    error
}

#[track_caller]
fn corrupt(builder: &Builder, says: &str) {
    refused(builder, ErrorKind::Corrupt, says);
}

/// Fails unless reading a byte is refused as corrupt with this text and offset.
#[track_caller]
fn unreadable(builder: &Builder, guest: u64, says: &str, at: u64) {
    let image = builder.open().unwrap();
    let error = image.read_exact_at(&mut [0], guest).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(at)), "{error}");
    assert!(error.to_string().contains(says), "{error}");
    assert!(image.extent(guest, 1).is_err());
}

#[track_caller]
fn bytes(builder: &Builder, guest: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0xee; length];
    builder.open().unwrap().read_exact_at(&mut bytes, guest).unwrap();
    bytes
}

#[track_caller]
fn byte(builder: &Builder, guest: u64) -> u8 {
    bytes(builder, guest, 1)[0]
}

fn image() -> Builder {
    Builder::new(8 * MIB)
}

// Headers

#[test]
fn empty_image() {
    let image = image().open().unwrap();
    assert_eq!((image.format(), image.virtual_size()), (Format::Vhdx, 8 * MIB));
    let extent = image.extent(0, 8 * MIB).unwrap();
    assert_eq!((extent.kind, extent.length), (ExtentKind::Zero, 8 * MIB));
}

#[test]
fn wrong_identifier_with_an_explicit_format() {
    let mut builder = image();
    builder.put(0, b"vhdxfilX");
    let options = OpenOptions { format: Some(Format::Vhdx), ..OpenOptions::default() };
    let storage = Box::new(crate::Memory(builder.sealed()));
    let error = options.open_storage(storage, "x").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Format);
}

/// Returns an image whose older header names a log that does not exist.
fn two_headers() -> Builder {
    let mut builder = image();
    builder.put(HEADERS[0] + 48, &LOG_GUID);
    builder
}

#[test]
fn header_with_the_larger_sequence_number() {
    // The log that the first header names does not exist.
    assert!(two_headers().open().is_ok());
    let mut builder = two_headers();
    builder.put64(HEADERS[0] + 8, u64::MAX);
    corrupt(&builder, "no valid sequence");
}

#[test]
fn header_with_a_wrong_checksum_does_not_count() {
    for (broken, opens) in [(0, true), (1, false)] {
        let mut builder = two_headers();
        builder.bytes = builder.sealed();
        builder.is_sealed = true;
        builder.bytes[HEADERS[broken] as usize + 4095] ^= 1;
        assert_eq!(builder.open().is_ok(), opens);
        builder.bytes[HEADERS[1 - broken] as usize + 100] ^= 1;
        corrupt(&builder, "neither of its headers is valid");
    }
}

#[test]
fn header_without_signature_does_not_count() {
    let mut builder = two_headers();
    builder.put(HEADERS[1], b"hea");
    builder.put(HEADERS[1] + 3, b"x");
    corrupt(&builder, "no valid sequence");
}

#[test]
fn equal_sequence_numbers() {
    let mut builder = image();
    builder.put64(HEADERS[0] + 8, 8);
    assert!(builder.open().is_ok());
    builder.put(HEADERS[0] + 32, b"x");
    corrupt(&builder, "same sequence number");
}

#[test]
fn unknown_versions() {
    for (at, says) in [(64, "log version 2"), (66, "version 2")] {
        let mut builder = image();
        builder.put(HEADERS[1] + at, &[2]);
        refused(&builder, ErrorKind::Unsupported, says);
    }
}

#[test]
fn log_offset() {
    for offset in [0, MIB - 1, MIB + 4096, u64::MAX] {
        let mut builder = image();
        builder.put64(HEADERS[1] + 72, offset);
        corrupt(&builder, "log does not begin");
    }
}

// Regions

#[test]
fn region_table_with_a_wrong_checksum_or_signature() {
    for table in REGIONS {
        let mut builder = image();
        builder.put(table + 2, b"x");
        corrupt(&builder, "region table is not valid");
        let mut builder = image();
        builder.bytes = builder.sealed();
        builder.is_sealed = true;
        builder.bytes[table as usize + 65535] ^= 0x80;
        corrupt(&builder, "region table is not valid");
    }
}

#[test]
fn region_tables_that_differ() {
    for at in [8, 16 + 16 + 2, 16 + 32 + 24] {
        let mut builder = image();
        let old = builder.bytes[(REGIONS[1] + at) as usize];
        builder.put(REGIONS[1] + at, &[old ^ 1]);
        corrupt(&builder, "region tables differ");
    }
    // The rest of the tables is reserved.
    let mut builder = image();
    builder.put(REGIONS[1] + 12, b"x");
    builder.put(REGIONS[1] + 50000, b"x");
    assert!(builder.open().is_ok());
}

#[test]
fn too_many_regions() {
    let mut builder = image();
    for table in REGIONS {
        builder.put32(table + 8, 2048);
    }
    corrupt(&builder, "2048 entries");
}

#[test]
fn regions_that_are_missing_or_occur_twice() {
    for count in [0, 1] {
        let mut builder = image();
        for table in REGIONS {
            builder.put32(table + 8, count);
        }
        corrupt(&builder, "lacks the BAT or the metadata");
    }
    let mut builder = image();
    let end = builder.append(&[0]);
    builder.region(0x2dc27766_f623_4200_9d64_115e9bfd4a08, end, MIB as u32, 1);
    corrupt(&builder, "two regions of one type");
}

#[test]
fn unknown_regions() {
    let mut builder = image();
    builder.region(1, 16 * MIB, MIB as u32, 0);
    assert!(builder.open().is_ok());
    builder.region(2, 17 * MIB, MIB as u32, 1);
    let says = "unknown type 00000000-0000-0000-0000-000000000002";
    refused(&builder, ErrorKind::Unsupported, says);
}

#[test]
fn regions_that_overlap() {
    for offset in [0, LOG, BAT, METADATA] {
        let mut builder = image();
        builder.region(1, offset, MIB as u32, 0);
        corrupt(&builder, "regions overlap");
    }
    let mut builder = image();
    builder.put32(HEADERS[1] + 68, 2 * MIB as u32);
    corrupt(&builder, "regions overlap");
    let mut builder = image();
    builder.region(1, u64::MAX - MIB + 1, u32::MAX, 0);
    builder.region(2, u64::MAX - MIB + 1, u32::MAX, 0);
    corrupt(&builder, "regions overlap");
    // Nothing overlaps an empty region.
    let mut builder = image();
    builder.region(1, BAT, 0, 0);
    assert!(builder.open().is_ok());
}

#[test]
fn region_that_is_not_aligned_or_past_the_end() {
    let mut builder = image();
    builder.region(1, 16 * MIB + 4096, MIB as u32, 0);
    corrupt(&builder, "multiple of 1 MiB");
    for entry in [16, 48] {
        let mut builder = image();
        for table in REGIONS {
            builder.put64(table + entry + 16, 100 * MIB);
        }
        corrupt(&builder, "past the end of the file");
    }
}

// Metadata

#[test]
fn metadata_table() {
    let mut builder = image();
    builder.put(METADATA + 7, b"X");
    corrupt(&builder, "no signature");
    let mut builder = image();
    builder.put(METADATA + 10, &2048_u16.to_le_bytes());
    corrupt(&builder, "2048 entries");
    let mut builder = image();
    for table in REGIONS {
        builder.put32(table + 48 + 24, 64 * KIB as u32 - 1);
    }
    corrupt(&builder, "too short");
}

#[test]
fn items_that_are_missing_short_or_twice() {
    for entry in 1..=5 {
        let at = METADATA + entry * 32;
        let mut builder = image();
        builder.put(at, &[0xff; 16]);
        builder.put32(at + 24, 0);
        corrupt(&builder, "is missing");
        let mut builder = image();
        builder.put32(at + 20, 3);
        corrupt(&builder, "is too short");
        let mut builder = image();
        let entry: Vec<u8> = builder.bytes[at as usize..][..16].to_vec();
        let new = builder.item(0, PARAMETERS, 8, 0);
        builder.put(new, &entry);
        corrupt(&builder, "two items of one type");
    }
}

#[test]
fn unknown_items() {
    let mut builder = image();
    builder.item(1, PARAMETERS, 8, 1);
    assert!(builder.open().is_ok());
    builder.item(1, PARAMETERS, 8, 4);
    refused(&builder, ErrorKind::Unsupported, "metadata of unknown type");
    let mut builder = image();
    builder.put32(METADATA + 32 + 24, 5);
    refused(&builder, ErrorKind::Unsupported, "user metadata");
}

#[test]
fn items_outside_of_their_region() {
    for (offset, length) in
        [(0, 8), (64 * KIB - 1, 8), (MIB - 7, 8), (u64::from(u32::MAX), 8), (64 * KIB, MIB + 1)]
    {
        let mut builder = image();
        builder.put32(METADATA + 32 + 16, offset as u32);
        builder.put32(METADATA + 32 + 20, length as u32);
        corrupt(&builder, "outside of its region");
    }
}

#[test]
fn sizes() {
    for block_size in [0, 1, 512 * KIB, 3 * MIB, 512 * MIB, 1 << 31] {
        corrupt(&Builder::with(MIB, block_size as u32, 512), "block size");
    }
    for sector_size in [0, 256, 511, 1024, 8192, u32::MAX] {
        corrupt(&Builder::with(MIB, MIB as u32, sector_size), "sector size");
    }
    for size in [0, 511, MIB + 1, (64 << 40) + 512, u64::MAX, u64::MAX - 511] {
        corrupt(&Builder::new(size), "virtual size");
    }
    corrupt(&Builder::with(MIB + 512, MIB as u32, 4096), "virtual size");
    assert!(Builder::new(512).open().is_ok());
    assert!(Builder::with(64 << 40, 256 << 20, 4096).open().is_err());
}

#[test]
fn flags() {
    let mut builder = image();
    builder.put32(PARAMETERS + 4, 1);
    assert!(builder.open().is_ok());
    builder.put32(PARAMETERS + 4, 4);
    refused(&builder, ErrorKind::Unsupported, "unknown flags");
    builder.put32(PARAMETERS + 4, 2);
    corrupt(&builder, "no parent locator");
    let mut builder = image();
    builder.locator(&[]);
    builder.put32(PARAMETERS + 4, 0);
    corrupt(&builder, "locator and no parent");
}

// BAT

#[test]
fn bat_that_is_too_short() {
    // 131072 entries fit. A bitmap entry follows every 4096 blocks.
    let blocks = 131072 - 31;
    assert!(Builder::new(blocks * MIB).open().is_ok());
    corrupt(&Builder::new(blocks * MIB + 512), "BAT is too short");
}

#[test]
fn states() {
    for (state, kind) in [(0, 0), (1, 0), (2, 0), (3, 0), (5, 0), (6, 9)] {
        let mut builder = image();
        let block = builder.block(9);
        builder.map(1, block | state);
        assert_eq!((byte(&builder, MIB - 1), byte(&builder, MIB)), (0, kind), "{state}");
    }
    for (state, says) in [(4, "unknown state 4"), (7, "has no parent")] {
        let mut builder = image();
        let block = builder.block(9);
        let at = builder.map(1, block | state);
        assert_eq!(byte(&builder, MIB - 1), 0);
        unreadable(&builder, MIB, says, at);
    }
}

#[test]
fn reserved_bits_of_an_entry_are_ignored() {
    let mut builder = image();
    let block = builder.block(9);
    builder.map(0, block | 0xffff8 | PRESENT);
    assert_eq!(byte(&builder, 0), 9);
}

#[test]
fn runs() {
    let mut builder = Builder::new(16 * MIB);
    let first = builder.block(1);
    builder.block(2);
    let third = builder.block(3);
    builder.map(2, first | PRESENT);
    builder.map(3, (first + MIB) | PRESENT);
    builder.map(4, third | PRESENT);
    builder.map(5, first | PRESENT);
    builder.map(6, 2);
    builder.map(7, 3);
    let image = builder.open().unwrap();
    let extent = |offset| image.extent(offset, u64::MAX).unwrap();
    assert_eq!((extent(0).kind, extent(0).length), (ExtentKind::Zero, 2 * MIB));
    assert_eq!((extent(2 * MIB).kind, extent(2 * MIB).length), (ExtentKind::Data, 4 * MIB));
    assert_eq!((extent(6 * MIB).kind, extent(6 * MIB).length), (ExtentKind::Zero, 10 * MIB));
    let mut all = vec![0xee; 4 * MIB as usize];
    image.read_exact_at(&mut all, 2 * MIB).unwrap();
    let expected = [1, 2, 3, 1].map(|byte| vec![byte; MIB as usize]).concat();
    assert!(all == expected);
    let mut some = vec![0; 2];
    image.read_exact_at(&mut some, 3 * MIB - 1).unwrap();
    assert_eq!(some, [1, 2]);
}

#[test]
fn bitmap_entries_between_payload_entries() {
    // With blocks of 256 MiB, a bitmap entry follows every 16 blocks.
    let size = 40 << 28;
    let mut builder = Builder::with(size, 256 << 20, 512);
    builder.map(15, 2);
    // A wrong entry of a bitmap is not read.
    builder.map(16, u64::MAX);
    builder.map(17, 4);
    let at = BAT + 17 * 8;
    let image = builder.open().unwrap();
    let extent = image.extent(0, size).unwrap();
    assert_eq!((extent.kind, extent.length), (ExtentKind::Zero, 16 << 28));
    unreadable(&builder, 16 << 28, "unknown state", at);
    builder.map(17, 0);
    assert_eq!(builder.open().unwrap().extent(0, size).unwrap().length, size);
}

#[test]
fn blocks_past_the_end_or_over_structures() {
    let base = image().bytes.len() as u64;
    for (offset, says) in [
        (0, "overlaps"),
        (LOG, "overlaps"),
        (BAT, "overlaps"),
        (METADATA, "overlaps"),
        (base, "past the end"),
        (!(MIB - 1), "past the end"),
        (1 << 62, "past the end"),
    ] {
        let mut builder = image();
        let at = builder.map(3, offset | PRESENT);
        assert_eq!(byte(&builder, 3 * MIB - 1), 0);
        unreadable(&builder, 3 * MIB, says, at);
        unreadable(&builder, 4 * MIB - 1, says, at);
    }
    let mut builder = image();
    builder.region(1, 5 * MIB, MIB as u32, 0);
    builder.block(1);
    builder.block(2);
    let at = builder.map(0, (5 * MIB) | PRESENT);
    builder.map(1, (4 * MIB) | PRESENT);
    unreadable(&builder, 0, "overlaps", at);
    assert_eq!(byte(&builder, MIB), 1);
}

#[test]
fn last_block_may_be_short() {
    let mut builder = Builder::new(2 * MIB + 512);
    let block = builder.block(7);
    builder.map(2, block | PRESENT);
    builder.bytes.truncate(block as usize + 512);
    assert_eq!(byte(&builder, 2 * MIB + 511), 7);
    builder.bytes.truncate(block as usize + 511);
    unreadable(&builder, 2 * MIB, "past the end", BAT + 16);
    let mut builder = Builder::new(2 * MIB + 512);
    builder.append(&[7; 512]);
    builder.map(1, block | PRESENT);
    builder.bytes.truncate(block as usize + 512);
    unreadable(&builder, MIB, "past the end", BAT + 8);
}

#[test]
fn files_that_are_cut_off() {
    let mut builder = image();
    let block = builder.block(1);
    builder.map(0, block | PRESENT);
    let whole = builder.sealed();
    for length in [
        HEADERS,
        REGIONS,
        [LOG, BAT],
        [BAT + 63, METADATA],
        [METADATA + 64 * KIB, METADATA + MIB - 1],
        [block, block + MIB - 1],
    ]
    .concat()
    .into_iter()
    .flat_map(|end| [end, end.saturating_sub(1)])
    {
        let bytes = whole[..length as usize].to_vec();
        let options = OpenOptions { format: Some(Format::Vhdx), ..OpenOptions::default() };
        let image = options.open_storage(Box::new(crate::Memory(bytes)), "x");
        let error = image.and_then(|image| image.read_exact_at(&mut [0], 0)).err();
        let error = error.unwrap_or_else(|| panic!("{length} bytes are enough"));
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{length}: {error}");
    }
}

#[test]
fn large_images_are_mapped_by_window() {
    let mut builder = Builder::with(64 << 40, 64 << 20, 512);
    builder.bytes.resize(16 << 20, 0);
    for table in REGIONS {
        builder.put64(table + 16 + 16, 4 * MIB);
        builder.put32(table + 16 + 24, 9 << 20);
    }
    let image = builder.open().unwrap();
    let (mut offset, mut calls) = (0, 0);
    while offset < image.virtual_size() {
        let extent = image.extent(offset, u64::MAX).unwrap();
        assert_eq!(extent.kind, ExtentKind::Zero);
        offset += extent.length;
        calls += 1;
    }
    assert!(calls < 200, "{calls}");
}

// Differencing images

const LINKAGE: (&str, &str) = ("parent_linkage", DATA_WRITE);
const RELATIVE: (&str, &str) = ("relative_path", r".\parent.vhdx");

/// Returns the bytes of the child, with a parent in the same folder, or the error.
fn read_child(child: &Builder, parent: &Builder) -> crate::Result<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("parent.vhdx"), parent.sealed()).unwrap();
    fs::write(folder.path().join("child.vhdx"), child.sealed()).unwrap();
    let image = OpenOptions::default().open(folder.path().join("child.vhdx"))?;
    let mut bytes = vec![0xee; image.virtual_size() as usize];
    image.read_exact_at(&mut bytes, 0)?;
    let mut extents = 0;
    while extents < image.virtual_size() {
        extents += image.extent(extents, u64::MAX)?.length;
    }
    Ok(bytes)
}

fn parent() -> Builder {
    let mut parent = image();
    for (index, byte) in [0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7].into_iter().enumerate() {
        let block = parent.block(byte);
        parent.map(index as u64, block | PRESENT);
    }
    parent
}

fn child() -> Builder {
    let mut child = image();
    child.locator(&[LINKAGE, RELATIVE]);
    child
}

#[test]
fn states_of_a_differencing_image() {
    let mut builder = child();
    let block = builder.block(0xcc);
    let mut bitmap = vec![0; MIB as usize];
    // Block 7: its first sector, its last one, and some between.
    let first = 7 * 2048 / 8;
    bitmap[first] = 0b1000_0001;
    bitmap[first + 1] = 0b11;
    bitmap[first + 255] = 0x80;
    let bitmap = builder.append(&bitmap);
    for (block_index, state) in [1, 2, 3, 5].into_iter().enumerate() {
        builder.map(block_index as u64 + 1, state);
    }
    builder.map(5, block | PRESENT);
    builder.map(7, block | PARTIAL);
    builder.map(4096, bitmap | 6);
    let bytes = read_child(&builder, &parent()).unwrap();
    let mut expected =
        [0xa0, 0, 0, 0, 0, 0xcc, 0xa6, 0xa7].map(|byte| vec![byte; MIB as usize]).concat();
    for sector in [0, 7, 8, 9, 2047] {
        expected[7 * MIB as usize + sector * 512..][..512].fill(0xcc);
    }
    assert!(bytes == expected);
}

#[test]
fn bitmap_of_large_sectors() {
    let mut builder = Builder::with(8 * MIB, MIB as u32, 4096);
    builder.locator(&[LINKAGE, RELATIVE]);
    let block = builder.block(0xcc);
    let mut bitmap = vec![0; MIB as usize];
    bitmap[256 / 8] = 0b10;
    let bitmap = builder.append(&bitmap);
    builder.map(1, block | PARTIAL);
    // A chunk has 32768 blocks.
    builder.map(32768, bitmap | 6);
    let bytes = read_child(&builder, &parent()).unwrap();
    let mut expected = (0xa0..0xa8).flat_map(|byte| vec![byte; MIB as usize]).collect::<Vec<_>>();
    expected[MIB as usize + 4096..][..4096].fill(0xcc);
    assert!(bytes == expected);
}

#[test]
fn bitmaps_that_are_missing_or_misplaced() {
    for (entry, says) in [
        (0, "has no sector bitmap"),
        (5 * MIB, "has no sector bitmap"),
        ((5 * MIB) | 7, "has no sector bitmap"),
        (METADATA | 6, "sector bitmap overlaps"),
        (6, "sector bitmap overlaps"),
        ((100 * MIB) | 6, "sector bitmap lies past"),
        (!7 | 6, "sector bitmap lies past"),
    ] {
        let mut builder = child();
        let block = builder.block(0xcc);
        builder.map(1, block | PARTIAL);
        let at = builder.map(4096, entry);
        let error = read_child(&builder, &parent()).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(at)), "{error}");
        assert!(error.reason().contains(says), "{error}");
    }
}

#[test]
fn parents_of_other_sizes() {
    let mut builder = Builder::new(10 * MIB);
    builder.locator(&[LINKAGE, RELATIVE]);
    let bytes = read_child(&builder, &parent()).unwrap();
    assert!(bytes[7 * MIB as usize] == 0xa7 && bytes[8 * MIB as usize..].iter().all(|it| *it == 0));
    let mut builder = Builder::new(2 * MIB);
    builder.locator(&[LINKAGE, RELATIVE]);
    assert_eq!(read_child(&builder, &parent()).unwrap().len(), 2 * MIB as usize);
}

#[track_caller]
fn refused_child(entries: &[(&str, &str)], kind: ErrorKind, says: &str) {
    let mut builder = image();
    builder.locator(entries);
    let error = read_child(&builder, &parent()).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn parent_is_identified() {
    let other = "{00000000-0000-0000-0000-000000000001}";
    for linkages in [
        vec![LINKAGE],
        vec![("parent_linkage", other), ("parent_linkage2", DATA_WRITE)],
        vec![("parent_linkage2", DATA_WRITE)],
        vec![("unknown", "x"), ("parent_linkage", &DATA_WRITE[1..37])],
    ] {
        let mut builder = image();
        builder.locator(&[linkages, vec![RELATIVE]].concat());
        assert_eq!(read_child(&builder, &parent()).unwrap()[0], 0xa0);
    }
    let reference = ErrorKind::Reference;
    refused_child(&[("parent_linkage", other), RELATIVE], reference, "is not the parent of");
    refused_child(&[RELATIVE], ErrorKind::Corrupt, "does not identify");
    refused_child(&[("parent_linkage", "x"), RELATIVE], ErrorKind::Corrupt, "than a GUID");
    refused_child(&[LINKAGE, LINKAGE, RELATIVE], ErrorKind::Corrupt, "two entries");
}

#[test]
fn names_of_parents() {
    let found = |entries: &[(&str, &str)]| {
        let mut builder = image();
        builder.locator(&[&[LINKAGE], entries].concat());
        read_child(&builder, &parent())
    };
    let drive = ("absolute_win32_path", r"C:\disks\parent.vhdx");
    for entries in [
        &[RELATIVE][..],
        &[("relative_path", "parent.vhdx")],
        &[drive, RELATIVE],
        &[("absolute_win32_path", "parent.vhdx")],
        &[("relative_path", r"C:\x"), ("volume_path", "./parent.vhdx")],
    ] {
        assert_eq!(found(entries).unwrap()[0], 0xa0);
    }
    let reference = ErrorKind::Reference;
    for (name, says) in [
        (r"C:\disks\parent.vhdx", "not a path of this system"),
        (r"\\?\Volume{x}\parent.vhdx", "not a path of this system"),
        (r"\\server\share\parent.vhdx", "not a path of this system"),
        (r"..\parent.vhdx", "--follow=any"),
        ("/etc/passwd", "--follow=any"),
        ("json:{}", "never followed"),
        ("nbd://host/x", "never followed"),
        ("child.vhdx", "its own backing chain"),
        ("missing.vhdx", "cannot open"),
        ("a\0b", "NUL"),
    ] {
        refused_child(&[LINKAGE, ("relative_path", name)], reference, says);
    }
    refused_child(&[LINKAGE], ErrorKind::Corrupt, "does not name");
}

#[test]
fn parent_of_another_format() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("parent.vhdx"), [0; 4096]).unwrap();
    fs::write(folder.path().join("child.vhdx"), child().sealed()).unwrap();
    let error = OpenOptions::default().open(folder.path().join("child.vhdx")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Format, "{error}");
    assert_eq!(error.name(), Path::new(&folder.path().join("parent.vhdx")));
}

#[test]
fn locators_that_are_damaged() {
    for (at, value, says) in [
        (16, 4 << 16, "too short"),
        (20, 10_000, "outside of it"),
        (20, u32::MAX, "outside of it"),
        (24, u32::MAX - 5, "outside of it"),
        (28, 0x4c_0000, "invalid length"),
        (28, 0x4c_0003, "invalid length"),
    ] {
        let mut builder = child();
        // Make room, so that only the changed field is wrong.
        builder.put32(METADATA + 6 * 32 + 20, if at == 16 { 60 } else { 8192 });
        builder.put32(LOCATOR + at, value);
        corrupt(&builder, says);
    }
    let mut builder = child();
    builder.put(LOCATOR, &[0]);
    refused(&builder, ErrorKind::Unsupported, "unknown type");
    let mut builder = child();
    builder.put32(METADATA + 6 * 32 + 20, 19);
    corrupt(&builder, "too short");
    let mut builder = child();
    let key = builder.get(LOCATOR + 20);
    builder.put(LOCATOR + u64::from(key), &[0, 0xd8]);
    corrupt(&builder, "not UTF-16");
}

// The log

/// Returns the sector of the BAT with these entries.
fn bat(entries: &[u64]) -> Vec<u8> {
    let mut sector: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
    sector.resize(4096, 0);
    sector
}

/// An image with two blocks of data, whose BAT is only in the log.
fn dirty() -> (Builder, Change) {
    let mut builder = image();
    let one = builder.block(1);
    let two = builder.block(2);
    builder.dirty();
    (builder, Change::Data(BAT, bat(&[one | PRESENT, two | PRESENT])))
}

#[test]
fn log_is_replayed() {
    let (mut builder, change) = dirty();
    builder.map(0, 4 | 1 << 60);
    builder.log(0, &LogEntry::new(1, 0, &[change]));
    assert_eq!(bytes(&builder, MIB - 1, 2), [1, 2]);
    assert_eq!(byte(&builder, 2 * MIB), 0);
    // The log of an image that was closed is not read.
    for at in HEADERS {
        builder.put(at + 48, &[0; 16]);
    }
    assert!(builder.open().unwrap().read_exact_at(&mut [0], 0).is_err());
}

#[test]
fn log_with_several_entries() {
    let (mut builder, change) = dirty();
    let one = 4 * MIB;
    let next = builder.log(0, &LogEntry::new(1, 0, &[change]));
    let next = builder.log(next, &LogEntry::new(2, 0, &[Change::Data(BAT, bat(&[one | PRESENT]))]));
    builder.log(next, &LogEntry::new(3, 0, &[Change::Zeros(one + 4096, 8192)]));
    assert_eq!(byte(&builder, MIB), 0);
    assert_eq!(bytes(&builder, 4095, 2), [1, 0]);
    assert_eq!(bytes(&builder, 4096 + 8191, 2), [0, 1]);
    let image = builder.open().unwrap();
    assert_eq!(image.extent(0, 8 * MIB).unwrap().length, MIB);
}

#[test]
fn log_that_wraps_around() {
    for start in [250, 253, 254, 255, 0] {
        let (mut builder, change) = dirty();
        let filler = Change::Zeros(BAT + 4096, 4096);
        let tail = builder.log(start, &LogEntry::new(8, 17, &[filler]));
        let next = builder.log(tail, &LogEntry::new(9, tail as u32, &[change]));
        builder.log(next, &LogEntry::new(10, tail as u32, &[]));
        assert_eq!(bytes(&builder, MIB - 1, 2), [1, 2], "{start}");
    }
}

#[test]
fn entries_before_the_tail_are_in_place() {
    let (mut builder, change) = dirty();
    // Replaying the first entry would give a block that is not in the file.
    let wrong = Change::Data(METADATA, vec![0xff; 4096]);
    let tail = builder.log(0, &LogEntry::new(1, 0, &[wrong]));
    builder.log(tail, &LogEntry::new(2, tail as u32, &[change]));
    assert_eq!(bytes(&builder, MIB - 1, 2), [1, 2]);
}

#[test]
fn newest_sequence() {
    for (old, new) in [(0, 100), (100, 0)] {
        let (mut builder, change) = dirty();
        let wrong = Change::Data(METADATA, vec![0xff; 4096]);
        builder.log(old, &LogEntry::new(5, old as u32, &[wrong]));
        builder.log(new, &LogEntry::new(1 << 40, new as u32, &[change]));
        assert_eq!(bytes(&builder, MIB - 1, 2), [1, 2]);
    }
}

#[test]
fn sequence_whose_tail_is_lost() {
    let (mut builder, change) = dirty();
    builder.log(10, &LogEntry::new(9, 5, std::slice::from_ref(&change)));
    corrupt(&builder, "no valid sequence");
    // An older sequence that is whole counts.
    builder.log(100, &LogEntry::new(2, 100, &[change]));
    assert_eq!(byte(&builder, 0), 1);
}

/// Fails unless an image is refused if its only entry is changed, and reads the entry before it
/// if there is one.
#[track_caller]
fn invalid_entry(spoil: impl Fn(&mut Vec<u8>)) {
    let (mut builder, change) = dirty();
    let next = builder.log(0, &LogEntry::new(1, 0, &[change]));
    let last = LogEntry::new(2, 0, &[Change::Data(METADATA, vec![0xff; 4096])]);
    builder.log(next, &last);
    corrupt(&builder, "metadata");
    let mut bytes = last.encode();
    spoil(&mut bytes);
    builder.put(LOG + next * 4096, &bytes);
    assert_eq!(byte(&builder, 0), 1);
    builder.put(LOG, &[0; 4096]);
    corrupt(&builder, "no valid sequence");
}

#[test]
fn entry_that_is_torn() {
    for at in [0, 4, 5, 63, 70, 4095, 4096, 4097, 5000, 8191] {
        invalid_entry(|bytes| bytes[at] ^= 1);
    }
    invalid_entry(|bytes| bytes[4096..].fill(0));
    // An older entry in place of the last sector.
    invalid_entry(|bytes| bytes[4096..4100].copy_from_slice(b"loge"));
}

#[test]
fn entry_with_a_valid_checksum_that_is_not_valid() {
    let set = |at: usize, value: &'static [u8]| {
        invalid_entry(move |bytes| {
            bytes[at..at + value.len()].copy_from_slice(value);
            seal(bytes);
        });
    };
    set(0, b"logf");
    set(8, &[0, 0, 0, 0]);
    set(8, &[1]);
    set(8, &[0, 0x10]);
    set(8, &[0xff; 4]);
    set(12, &[1]);
    set(16, &[0; 8]);
    set(16, &[3]);
    set(24, &[2]);
    set(24, &[0xff; 4]);
    set(32, b"x");
    set(64, b"dust");
    set(64 + 16, &[1]);
    set(64 + 24, &[1]);
    set(4096, b"dust");
    set(4096 + 4, &[1]);
    set(8191, &[1]);
}

#[test]
fn entry_with_many_descriptors() {
    // 126 descriptors fit in the first sector and 128 in each other.
    for count in [125, 126, 127, 253, 254, 255, 600] {
        let (mut builder, change) = dirty();
        let zeros = (1..count).map(|index| Change::Zeros(BAT + index * 4096 % MIB, 4096));
        let changes: Vec<_> = zeros.chain([change]).collect();
        builder.log(3, &LogEntry::new(1, 3, &changes));
        assert_eq!(bytes(&builder, MIB - 1, 2), [1, 2], "{count}");
    }
}

#[test]
fn changes_over_changes() {
    let (mut builder, _) = dirty();
    let (one, fill) = (4 * MIB, |byte| vec![byte; 4096]);
    builder.map(0, one | PRESENT);
    let changes = [
        Change::Data(one, fill(10)),
        Change::Zeros(one, 5 * 4096),
        Change::Data(one + 8192, fill(11)),
        Change::Data(one + 5 * 4096, fill(12)),
        Change::Zeros(one + 4 * 4096, 3 * 4096),
        Change::Data(one + 6 * 4096, fill(13)),
        Change::Data(one + 8 * 4096, (0..4096).map(|at| at as u8).collect()),
        Change::Zeros(one + MIB - 4096, 4096),
        Change::Zeros(one, 0),
    ];
    builder.log(0, &LogEntry::new(1, 0, &changes));
    let found = bytes(&builder, 0, MIB as usize);
    let sectors: Vec<_> = found.chunks(4096).map(|sector| (sector[0], sector[4095])).collect();
    let expected =
        [(0, 0), (0, 0), (11, 11), (0, 0), (0, 0), (0, 0), (13, 13), (1, 1), (0, 255), (1, 1)];
    assert_eq!(sectors[..10], expected);
    assert_eq!(sectors[254..], [(1, 1), (0, 0)]);
    assert!((0..4096).all(|at| found[8 * 4096 + at] == at as u8));
}

#[test]
fn regions_and_metadata_in_the_log() {
    let (mut builder, change) = dirty();
    let whole = builder.sealed();
    let sector = |at: u64| Change::Data(at, whole[at as usize..][..4096].to_vec());
    let changes = [sector(REGIONS[0]), sector(METADATA), sector(PARAMETERS), change];
    builder.log(0, &LogEntry::new(1, 0, &changes));
    for at in [REGIONS[0], METADATA, PARAMETERS] {
        builder.put(at, &[0xff; 4096]);
    }
    // Its checksum is in the log.
    builder.bytes = {
        let mut bytes = builder.sealed();
        bytes[REGIONS[0] as usize..][..4096].fill(0xff);
        bytes
    };
    builder.is_sealed = true;
    assert_eq!(bytes(&builder, MIB - 1, 2), [1, 2]);
}

#[test]
fn changes_that_are_not_possible() {
    let end = dirty().0.bytes.len() as u64;
    for (change, says) in [
        (Change::Zeros(0, 4096), "changes itself or the headers"),
        (Change::Zeros(HEADERS[1], 4096), "changes itself or the headers"),
        (Change::Zeros(LOG + MIB - 4096, 8192), "changes itself or the headers"),
        (Change::Data(LOG, vec![0; 4096]), "changes itself or the headers"),
        (Change::Data(end, vec![0; 4096]), "past the end"),
        (Change::Zeros(end - 4096, 8192), "past the end"),
        (Change::Zeros(end - 4096, u64::MAX - 4095), "past the end"),
    ] {
        let (mut builder, _) = dirty();
        builder.log(0, &LogEntry::new(1, 0, &[change]));
        corrupt(&builder, says);
    }
}

#[test]
fn file_that_is_shorter_than_its_log_states() {
    for sizes in [[6 * MIB, 0], [0, 6 * MIB]] {
        let (mut builder, change) = dirty();
        let entry = LogEntry { sizes, ..LogEntry::new(1, 0, &[change]) };
        builder.log(0, &entry);
        assert_eq!(byte(&builder, 0), 1);
        let sizes = sizes.map(|size| size + u64::from(size > 0));
        builder.log(0, &LogEntry { sizes, ..entry });
        corrupt(&builder, "shorter than");
    }
}

#[test]
fn log_that_is_not_possible_or_too_long() {
    let (builder, _) = dirty();
    for (length, kind, says) in [
        (0, ErrorKind::Corrupt, "length is not possible"),
        (4096, ErrorKind::Corrupt, "length is not possible"),
        (MAX_LOG + MIB, ErrorKind::Unsupported, "are not read"),
        (MAX_LOG, ErrorKind::Corrupt, "past the end"),
    ] {
        let mut builder = builder.clone();
        builder.put32(HEADERS[1] + 68, length as u32);
        refused(&builder, kind, says);
    }
}

#[test]
fn too_many_changes() {
    for (extra, is_refused) in [(0, false), (1, true)] {
        let (mut builder, change) = dirty();
        let zeros = vec![Change::Zeros(BAT + 4096, 4096); (MAX_DESCRIPTORS - 1 + extra) as usize];
        let changes = [&zeros[..], &[change]].concat();
        builder.log(0, &LogEntry::new(1, 0, &changes));
        if is_refused {
            refused(&builder, ErrorKind::Unsupported, "more than 16384 changes");
        } else {
            assert_eq!(byte(&builder, 0), 1);
        }
    }
}
