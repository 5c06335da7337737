//! A test for each rule of the format, named after the rule or its violation.

mod damage;
mod log;
mod parents;

use super::builder::*;
use super::units::{KIB, MIB};
use crate::formats::builder::{corrupt, refused};
use crate::{ErrorKind, ExtentKind, Format, OpenOptions, Source};

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

/// Returns an image whose older header names a log, which would damage the metadata.
fn two_headers() -> Builder {
    let mut builder = image();
    builder.put(HEADERS[0] + 48, &LOG_GUID);
    builder.log(0, &LogEntry::new(1, 0, &[Change::Data(METADATA, vec![0xff; 4096])]));
    builder
}

#[test]
fn header_with_the_larger_sequence_number() {
    assert!(two_headers().open().is_ok());
    let mut builder = two_headers();
    builder.put64(HEADERS[0] + 8, u64::MAX);
    corrupt(&builder, "metadata");
}

#[test]
fn header_that_is_damaged() {
    for broken in [0, 1] {
        // Both name no log, so that it does not matter which of them counts.
        let mut builder = image();
        builder.bytes = builder.sealed();
        builder.is_sealed = true;
        builder.bytes[HEADERS[broken] as usize + 4095] ^= 1;
        assert!(builder.open().is_ok());
        builder.bytes[HEADERS[1 - broken] as usize + 100] ^= 1;
        corrupt(&builder, "neither of its headers is valid");
        // The log that only one of them names does not have to be replayed, or is lost.
        let mut builder = two_headers();
        builder.bytes = builder.sealed();
        builder.is_sealed = true;
        builder.bytes[HEADERS[broken] as usize + 4095] ^= 1;
        corrupt(&builder, "the other one names another log");
        assert_eq!(builder.open().err().unwrap().offset(), Some(HEADERS[broken]));
        // Nothing of the header is left.
        let mut builder = image();
        builder.bytes = builder.sealed();
        builder.is_sealed = true;
        builder.put(HEADERS[broken], &[0; 4096]);
        corrupt(&builder, "the other one names another log");
    }
}

#[test]
fn header_without_signature_does_not_count() {
    let mut builder = image();
    builder.put64(HEADERS[1] + 8, u64::MAX);
    builder.put(HEADERS[1], b"heax");
    assert!(builder.open().is_ok());
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
    for size in [511, MIB + 1, (64 << 40) + 512, u64::MAX, u64::MAX - 511] {
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
fn image_of_no_bytes() {
    // As in QEMU, which subtracts 1 from the number of blocks. tests/formats/test_virtual_sizes.py has its images.
    corrupt(&Builder::new(0), "BAT is too short");
    let mut builder = Builder::new(0);
    builder.locator(&[]);
    corrupt(&builder, "parent");
}

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
