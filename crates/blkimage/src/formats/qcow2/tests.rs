//! A test for each rule of the format, named after the violation.

use super::builder::Builder;
use crate::formats::builder::{byte, corrupt, refused, unreadable};
use crate::{ErrorKind, ExtentKind, Format, Hint, Image, OpenOptions, Source};

const K: u64 = 1024;
const COPIED: u64 = 1 << 63;

fn image() -> Builder {
    Builder::new(16, 1 << 30)
}

#[test]
fn versions() {
    assert_eq!(image().open().unwrap().format(), Format::Qcow2);
    assert_eq!(Builder::v2(16, K).open().unwrap().virtual_size(), K);
    for version in [0, 4, u32::MAX] {
        let mut builder = image();
        builder.put32(4, version);
        refused(&builder, ErrorKind::Unsupported, "is not known");
    }
}

#[test]
fn wrong_magic_with_an_explicit_format() {
    let mut builder = image();
    builder.put(0, b"XXXX");
    let options = OpenOptions { format: Some(Format::Qcow2), ..OpenOptions::default() };
    assert_eq!(builder.open_with(&options).err().unwrap().kind(), ErrorKind::Format);
}

#[test]
fn header_cut_off() {
    let whole = image();
    for length in [4, 8, 71, 72, 103] {
        let mut builder = image();
        builder.bytes.truncate(length);
        corrupt(&builder, "header is cut off");
    }
    assert!(whole.open().is_ok());
    // A whole image of version 2 without content.
    let mut header = Builder::v2(16, 0);
    header.put32(36, 0);
    header.bytes.truncate(72);
    assert_eq!(header.open().unwrap().virtual_size(), 0);
}

#[test]
fn header_length_below_104_not_a_multiple_of_8_or_past_the_cluster() {
    for length in [0, 72, 96, 103, 105, u32::MAX, 0x10008] {
        let mut builder = image();
        builder.put32(100, length);
        corrupt(&builder, "header");
    }
    let mut builder = image();
    builder.put32(100, 1024);
    assert!(builder.open().is_ok());
}

#[test]
fn cluster_bits_out_of_range() {
    for bits in [0, 8, 22, 63, 64, u32::MAX] {
        let mut builder = image();
        builder.put32(20, bits);
        corrupt(&builder, "cluster size");
    }
}

#[test]
fn subclusters_below_a_sector() {
    corrupt(&Builder::extended(13, K), "too small for subclusters");
    assert!(Builder::extended(14, K).open().is_ok());
}

#[test]
fn unknown_incompatible_features_are_named() {
    let mut builder = image();
    builder.put64(72, 1 << 5 | 1 << 63);
    let names = [&[0, 5][..], b"time travel\x1b", &[0; 34], &[1, 63], &[b'x'; 46]].concat();
    builder.extension(104, 0x6803_f857, &names);
    let error = refused(&builder, ErrorKind::Unsupported, "\"time travel\\u{1b}\" (bit 5), bit 63");
    assert_eq!(error.offset(), Some(72));
}

#[test]
fn dirty_is_fine_and_corrupt_is_a_warning() {
    let mut builder = image();
    builder.put64(72, 1);
    assert!(builder.open().unwrap().warnings().is_empty());
    builder.put64(72, 2);
    let image = builder.open().unwrap();
    assert!(image.warnings()[0].to_string().contains("test.qcow2: is marked as corrupt"));
}

#[test]
fn feature_fields_of_version_2_are_ignored() {
    let mut builder = Builder::v2(16, K);
    builder.put64(72, 0);
    builder.put(80, &[0xff; 24]);
    assert!(builder.open().is_ok());
}

#[test]
fn encryption_is_refused_by_name() {
    for (method, name) in [(1, "AES"), (2, "LUKS"), (3, "method 3")] {
        let mut builder = image();
        builder.put32(32, method);
        refused(&builder, ErrorKind::Unsupported, name);
    }
}

#[test]
fn compression_type_and_its_bit_contradict() {
    for (kind, bit, header_length) in [(1, 0, 112), (0, 1 << 3, 112), (1, 1 << 3, 104)] {
        let mut builder = image();
        builder.put(104, &[kind]);
        builder.put64(72, bit);
        builder.put32(100, header_length);
        corrupt(&builder, "contradict");
    }
    let mut builder = image();
    builder.put(104, &[2]);
    builder.put64(72, 1 << 3);
    builder.put32(100, 112);
    refused(&builder, ErrorKind::Unsupported, "compression type 2");
}

#[test]
fn l1_table_larger_than_32_mib() {
    for entries in [100 << 20 >> 3, (32 << 20 >> 3) + 1, u32::MAX] {
        let mut builder = image();
        builder.put32(36, entries);
        corrupt(&builder, "32 MiB");
    }
}

#[test]
fn l1_table_too_small_for_the_size() {
    for size in [(1 << 30) + 512, 1 << 40, 1 << 62, (1 << 63) - 512, 1 << 63, u64::MAX] {
        let mut builder = image();
        builder.put64(24, size);
        corrupt(&builder, "too small");
    }
}

#[test]
fn l1_table_larger_than_the_size_needs() {
    let mut builder = image();
    builder.put32(36, 4 << 20);
    assert_eq!(byte(&builder, 0), 0);
}

#[test]
fn l1_table_unaligned_or_past_the_end() {
    for offset in [512, 0x10001, 1 << 62, u64::MAX, u64::MAX << 16, 0x20000] {
        let mut builder = image();
        builder.put64(40, offset);
        corrupt(&builder, "L1 table");
    }
}

#[test]
fn largest_virtual_size() {
    let mut builder = Builder::new(21, 1 << 39);
    builder.put64(24, 1 << 61);
    builder.put32(36, 4 << 20);
    builder.bytes.resize((2 << 20) + (32 << 20), 0);
    let image = builder.open().unwrap();
    let (mut offset, mut calls) = (0, 0);
    while offset < image.size() {
        let extent = image.extent(offset, u64::MAX).unwrap();
        assert_eq!(extent.kind, ExtentKind::Zero);
        (offset, calls) = (extent.end(), calls + 1);
    }
    assert_eq!(offset, 1 << 61);
    assert!(calls <= 512, "{calls}");
}

#[test]
fn size_is_floored_to_sectors() {
    let mut builder = image();
    builder.put64(24, 1000);
    assert_eq!(builder.open().unwrap().virtual_size(), 512);
    builder.put64(24, 511);
    assert_eq!(builder.open().unwrap().virtual_size(), 0);
}

#[test]
fn backing_file_offset_past_cluster() {
    let mut builder = image();
    for offset in [0x10001, 1 << 40, u64::MAX] {
        builder.put64(8, offset);
        builder.put32(16, 4);
        corrupt(&builder, "first cluster");
    }
}

#[test]
fn backing_file_name_too_long() {
    for (offset, size) in [(0x200, 1024), (0xfff0, 17), (0x200, u32::MAX)] {
        let mut builder = image();
        builder.put64(8, offset);
        builder.put32(16, size);
        corrupt(&builder, "too long");
    }
}

#[test]
fn empty_backing_file_name_is_none() {
    let mut builder = image();
    builder.put64(8, 0x200);
    assert!(builder.open().is_ok());
}

#[test]
fn references_from_memory_are_not_followed() {
    let mut builder = image();
    builder.put64(8, 0x200);
    builder.put32(16, 4);
    builder.put(0x200, b"base");
    refused(&builder, ErrorKind::Reference, "whose format is not recorded");
    assert_eq!(builder.open().err().unwrap().hint(), Some(Hint::RecordFormat));
    builder.extension(104, 0xe279_2aca, b"raw");
    refused(&builder, ErrorKind::Reference, "\"base\"");
    builder.extension(104, 0xe279_2aca, b"x\ny");
    refused(&builder, ErrorKind::Reference, "format \"x\\ny\" is not known");
}

#[test]
fn extension_past_the_header() {
    let mut builder = image();
    builder.put32(104, 0x1234_5678);
    builder.put32(108, 0x10000 - 104 - 8 + 1);
    corrupt(&builder, "does not end in the header");
    builder.put32(108, u32::MAX);
    corrupt(&builder, "does not end in the header");
}

#[test]
fn too_many_extensions() {
    let mut builder = image();
    for at in (104..0x10000).step_by(8) {
        builder.put32(at, 0x1234_5678);
    }
    corrupt(&builder, "too many");
}

#[test]
fn data_file_without_a_name() {
    let mut builder = image();
    builder.put64(72, 1 << 2);
    corrupt(&builder, "not named");
    builder.extension(104, 0x4441_5441, b"../data");
    refused(&builder, ErrorKind::Reference, "data file \"../data\"");
}

#[test]
fn data_between_unallocated_clusters() {
    let mut builder = image();
    let at = builder.append_data(7);
    builder.map(64 * K, at | COPIED);
    assert_eq!(
        [0, 64 * K - 1, 64 * K, 128 * K - 1, 128 * K].map(|g| byte(&builder, g)),
        [0, 0, 7, 7, 0]
    );
    let image = builder.open().unwrap();
    let first = image.extent(0, u64::MAX).unwrap();
    assert_eq!((first.length, first.kind), (64 * K, ExtentKind::Zero));
    let second = image.extent(64 * K + 1, u64::MAX).unwrap();
    assert_eq!((second.length, second.kind), (64 * K - 1, ExtentKind::Data));
}

#[test]
fn neighbours_are_joined_only_if_contiguous() {
    let mut builder = image();
    let (a, b) = (builder.append_data(1), builder.append_data(2));
    for (guest, host) in [(0, a), (1, b), (2, a), (3, a)] {
        builder.map(guest * 64 * K, host | COPIED);
    }
    let image = builder.open().unwrap();
    let mut content = vec![0; 256 << 10];
    image.read_exact_at(&mut content, 0).unwrap();
    let expected: Vec<u8> = [1, 2, 1, 1].iter().flat_map(|byte| [*byte; 64 << 10]).collect();
    assert!(content == expected);
    assert_eq!(image.extent(0, u64::MAX).unwrap().length, 256 * K);
}

/// Entries that count up are not looked at one by one.
#[test]
fn runs_end_where_the_entries_do_not_count_up() {
    let cluster = 64 * K;
    let clusters = 64;
    let data = |image: &Image| {
        let extent = image.extent(0, u64::MAX).unwrap();
        assert_eq!(extent.kind, ExtentKind::Data);
        extent.length / cluster
    };
    for (changed, entry, expected) in [
        // Of the same kind, with other flags or at another place.
        (40, Some(40 * cluster), clusters),
        (40, Some((7 * cluster) | COPIED), clusters),
        // Of another kind.
        (1, Some(0), 1),
        (40, Some(0), 40),
        (40, Some((40 * cluster) | COPIED | 1), 40),
        (63, Some(0), 63),
        // Invalid.
        (40, Some((40 * cluster + 512) | COPIED), 40),
        (0, None, clusters),
    ] {
        let mut builder = Builder::new(16, clusters * cluster);
        for number in 0..clusters {
            builder.map(number * cluster, (cluster * number.max(1)) | COPIED);
        }
        if let Some(entry) = entry {
            builder.map(changed * cluster, entry);
        }
        builder.bytes.resize((clusters * cluster) as usize, 0);
        assert_eq!(data(&builder.open().unwrap()), expected, "{changed} {entry:?}");
    }
    // The third entry has a carry into the flags, and no place.
    let mut builder = Builder::new(16, clusters * cluster);
    for number in 0..clusters {
        builder.map(number * cluster, (0x00ff_ffff_fffe_0000 + number * cluster) | COPIED);
    }
    let image = builder.open().unwrap();
    assert_eq!(data(&image), 2);
    assert_eq!(image.extent(2 * cluster, u64::MAX).unwrap().kind, ExtentKind::Zero);
}

#[test]
fn l2_table_unaligned() {
    let mut builder = image();
    builder.put64(builder.l1_entry_at(0), 0x10200);
    unreadable(&builder, 0, "not aligned");
    assert_eq!(byte(&builder, 512 << 20), 0);
}

#[test]
fn l2_table_past_the_end() {
    for offset in [builder_end(), 0x00ff_ffff_ffff_0000] {
        let mut builder = image();
        builder.put64(builder.l1_entry_at(0), offset);
        unreadable(&builder, 0, "past the end");
    }
}

fn builder_end() -> u64 {
    image().bytes.len() as u64
}

#[test]
fn l2_table_that_is_the_l1_table() {
    let mut builder = image();
    let l1 = builder.l1_entry_at(0);
    builder.put64(l1, l1);
    // The first L2 entry maps guest cluster 0 to the table itself.
    let mut bytes = [0; 8];
    builder.open().unwrap().read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(u64::from_be_bytes(bytes), l1);
}

#[test]
fn l2_tables_that_overlap_the_header() {
    let mut builder = image();
    builder.bytes.resize(0x20000, 0);
    builder.put64(builder.l1_entry_at(0), 0x10000);
    builder.put64(0x10000, 0x10000);
    assert!(builder.open().unwrap().extent(0, u64::MAX).is_ok());
}

#[test]
fn host_offset_unaligned() {
    for entry in [0x20200, 0x20200 | COPIED, 0x20200 | 1] {
        let mut builder = image();
        builder.map(0, entry);
        unreadable(&builder, 0, "not aligned");
    }
}

#[test]
fn host_offset_past_the_end() {
    let mut builder = image();
    builder.map(0, COPIED | 1 << 40);
    unreadable(&builder, 0, "past the end");
    // Only the requested bytes have to be present.
    let at = builder.append_data(7);
    builder.map(0, COPIED | at);
    builder.bytes.truncate(at as usize + 1000);
    assert_eq!(byte(&builder, 999), 7);
    unreadable(&builder, 1000, "past the end");
}

#[test]
fn zero_flag_in_version_2() {
    let mut builder = Builder::v2(16, 1 << 20);
    builder.map(0, 1);
    unreadable(&builder, 0, "version 2");
    let mut builder = image();
    builder.map(0, 1);
    assert_eq!(byte(&builder, 0), 0);
}

#[test]
fn zero_flag_wins_over_data() {
    let mut builder = image();
    let at = builder.append_data(7);
    builder.map(0, at | COPIED | 1);
    assert_eq!(byte(&builder, 0), 0);
    assert_eq!(builder.open().unwrap().extent(0, 1).unwrap().kind, ExtentKind::Zero);
}

#[test]
fn offset_0_is_unallocated_without_a_data_file() {
    let mut builder = image();
    builder.map(0, COPIED);
    assert_eq!(byte(&builder, 0), 0);
}

#[test]
fn subclusters() {
    let mut builder = Builder::extended(16, 1 << 20);
    let at = builder.append_data(7);
    builder.map_extended(0, at | COPIED, 0b0110 | 0b1000 << 32);
    builder.map_extended(64 * K, 0, 0xffff_ffff << 32);
    let guests = [0, 2 * K, 6 * K - 1, 6 * K, 8 * K, 64 * K];
    assert_eq!(guests.map(|guest| byte(&builder, guest)), [0, 7, 7, 0, 0, 0]);
    let extent = builder.open().unwrap().extent(3 * K, u64::MAX).unwrap();
    assert_eq!((extent.length, extent.kind), (3 * K, ExtentKind::Data));
}

#[test]
fn subcluster_both_allocated_and_zero() {
    let mut builder = Builder::extended(16, 1 << 20);
    let at = builder.append_data(7);
    builder.map_extended(0, at | COPIED, 1 | 1 << 32);
    unreadable(&builder, 0, "both");
}

#[test]
fn subcluster_allocated_without_a_cluster() {
    let mut builder = Builder::extended(16, 1 << 20);
    builder.map_extended(0, 0, 1);
    unreadable(&builder, 0, "in a cluster that is not");
}

#[test]
fn subcluster_bit_0_of_the_entry_is_ignored() {
    let mut builder = Builder::extended(16, 1 << 20);
    let at = builder.append_data(7);
    builder.map_extended(0, at | COPIED | 1, 0xffff_ffff);
    assert_eq!(byte(&builder, 0), 7);
}

#[test]
fn snapshots_past_the_end_or_too_many() {
    let options = OpenOptions { snapshot: Some("s".into()), ..OpenOptions::default() };
    for (count, offset, says) in [
        (65537, 0x10000, "65536"),
        (1, u64::MAX - 0xffff, "aligned"),
        (1, 1 << 40, "past the end"),
        (1, 0x10008, "aligned"),
        (0, 8, "aligned"),
    ] {
        let mut builder = image();
        builder.put32(60, count);
        builder.put64(64, offset);
        corrupt(&builder, says);
    }
    let error = image().open_with(&options).err().unwrap();
    assert!(error.to_string().contains("no snapshot \"s\""), "{error}");
}

#[test]
fn snapshot_with_more_extra_data_than_1024_bytes() {
    for (length, is_good) in [(1024, true), (1025, false)] {
        let mut builder = image();
        let entry = [&[0; 36][..], &u32::to_be_bytes(length), &[0; 1025]].concat();
        let at = builder.append(&entry);
        builder.put32(60, 1);
        builder.put64(64, at);
        match is_good {
            true => assert!(builder.open().is_ok()),
            false => corrupt(&builder, "extra data"),
        }
    }
}

#[test]
fn snapshot_table_larger_than_64_mib() {
    let mut builder = image();
    let entry = [&[0; 12][..], &[0xff; 4], &[0; 20], &u32::to_be_bytes(1024)].concat();
    let entry = [&entry[..], &vec![0; 1024 + 2 * 0xffff]].concat();
    let entry = [&entry[..], &[0; 2]].concat();
    assert!(entry.len().is_multiple_of(8));
    let at = builder.append(&entry.repeat((64 << 20) / entry.len() + 1));
    builder.put32(60, ((64 << 20) / entry.len() + 1) as u32);
    builder.put64(64, at);
    corrupt(&builder, "larger than 64 MiB");
}

#[test]
fn reference_counts_wider_than_64_bits() {
    for (order, is_good) in [(0, true), (6, true), (7, false), (1 << 31, false)] {
        let mut builder = image();
        builder.put32(96, order);
        match is_good {
            true => assert!(builder.open().is_ok()),
            false => corrupt(&builder, "wider than 64 bits"),
        }
    }
}

#[test]
fn reference_count_table_absent_or_too_large() {
    for (clusters, says) in [(0, "missing"), (129, "larger than 8 MiB"), (u32::MAX, "8 MiB")] {
        for mut builder in [image(), Builder::v2(16, K)] {
            builder.put32(56, clusters);
            corrupt(&builder, says);
        }
    }
    let mut builder = image();
    builder.put32(56, 128);
    assert!(builder.open().is_ok());
}

#[test]
fn reference_count_table_misaligned_or_past_all_offsets() {
    for (offset, says) in [(1, "aligned"), (0x8000, "aligned"), (1 << 63, "largest offset")] {
        for mut builder in [image(), Builder::v2(16, K)] {
            builder.put64(48, offset);
            corrupt(&builder, says);
        }
    }
}

#[test]
fn l1_table_misaligned_although_nothing_is_mapped() {
    let mut builder = Builder::new(16, 0);
    assert!(builder.open().is_ok());
    builder.put64(40, 512);
    corrupt(&builder, "not aligned");
}

#[test]
fn raw_data_file_without_a_data_file() {
    let mut builder = image();
    builder.put64(88, 2);
    corrupt(&builder, "there is none");
}

#[test]
fn header_extension_longer_than_the_header() {
    for kind in [0, 0x1234_5678] {
        let mut builder = image();
        builder.put32(104, kind);
        builder.put32(108, 0x10000 - 112);
        assert!(builder.open().is_ok());
        builder.put32(108, 0x10000 - 111);
        corrupt(&builder, "does not end in the header");
    }
}

#[test]
fn header_extension_that_begins_less_than_8_bytes_before_the_end() {
    let mut builder = image();
    builder.put32(104, 0x1234_5678);
    builder.put64(8, 116);
    corrupt(&builder, "does not end in the header");
    builder.put64(8, 120);
    assert!(builder.open().is_ok());
}

#[test]
fn backing_format_of_16_bytes() {
    for (length, is_good) in [(15, true), (16, false)] {
        let mut builder = image();
        builder.extension(104, 0xe279_2aca, &vec![b'x'; length]);
        match is_good {
            true => assert!(builder.open().is_ok()),
            false => corrupt(&builder, "too long"),
        }
    }
}

#[test]
fn encryption_header_of_an_image_that_is_not_encrypted() {
    let mut builder = image();
    builder.extension(104, 0x0537_be77, &[0; 16]);
    corrupt(&builder, "not encrypted");
}

/// Invalid snapshots: lengths up to 4 GiB, and L1 tables in wrong places.
#[test]
fn snapshot_entries() {
    let options = OpenOptions { snapshot: Some("s".into()), ..OpenOptions::default() };
    let make = |l1_offset: u64, entries: u32, extra: u32, size: u64| {
        let mut builder = image();
        let mut entry = Vec::new();
        entry.extend(l1_offset.to_be_bytes());
        entry.extend(entries.to_be_bytes());
        entry.extend([0, 1, 0, 1]);
        entry.extend([0; 20]);
        entry.extend(extra.to_be_bytes());
        if extra >= 16 {
            entry.extend([0; 8]);
            entry.extend(size.to_be_bytes());
        }
        entry.extend(b"1s");
        let at = builder.append(&entry);
        builder.put32(60, 1);
        builder.put64(64, at);
        builder
    };
    let l1 = image().l1_entry_at(0);
    let size = |builder: Builder| Ok(builder.open_with(&options)?.virtual_size());
    let kind = |result: crate::Result<u64>| result.map_err(|error| error.kind());
    assert_eq!(kind(size(make(l1, 2, 16, 5 * K))), Ok(5 * K));
    assert_eq!(kind(size(make(l1, 1, 0, 0))), Ok(1 << 30));
    assert_eq!(kind(size(make(l1, 0, 0, 0))), Ok(1 << 30));
    for builder in [
        make(l1, 1, 16, 1 << 30),
        make(l1 + 512, 2, 16, 1 << 30),
        make(1 << 40, 2, 16, 1 << 30),
        make(l1, 2, u32::MAX, 1 << 30),
        make(l1, u32::MAX, 16, u64::MAX),
    ] {
        assert_eq!(kind(size(builder)), Err(ErrorKind::Corrupt));
    }
}

#[test]
fn raw_has_no_snapshots() {
    let options = OpenOptions { snapshot: Some("s".into()), ..OpenOptions::default() };
    let storage = Box::new(crate::Memory(vec![0; 512]));
    let error = options.open_storage(storage, "raw").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Snapshot);
}

#[test]
fn reading_past_the_end_is_an_argument_error() {
    let image = image().open().unwrap();
    for (offset, length) in [(1 << 30, 1), ((1 << 30) - 1, 2), (u64::MAX, 1)] {
        let error = image.read_exact_at(&mut vec![0; length], offset).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
    }
    assert!(image.read_exact_at(&mut [], 1 << 30).is_ok());
    assert_eq!(image.extent(1 << 30, 1).unwrap_err().kind(), ErrorKind::Argument);
}
