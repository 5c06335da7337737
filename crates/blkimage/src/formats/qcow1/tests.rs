//! A test for each rule of the format, named after the violation.

use crate::formats::builder::{Built, byte, refused, unreadable};
use crate::{ErrorKind, ExtentKind, Format, Hint, Image, Memory, OpenOptions, Result, Source};

const K: u64 = 1024;

/// An image: the header, the L1 table at 512, then everything appended.
struct Builder {
    bytes: Vec<u8>,
    cluster_bits: u32,
    l2_bits: u32,
}

impl Builder {
    fn new(cluster_bits: u32, l2_bits: u32, size: u64) -> Self {
        let mut new = Self { bytes: vec![0; 512], cluster_bits, l2_bits };
        new.put(0, b"QFI\xfb\0\0\0\x01");
        new.put64(24, size);
        new.put(32, &[cluster_bits as u8, l2_bits as u8]);
        new.put64(40, 512);
        let entries = size.div_ceil(1 << (cluster_bits + l2_bits));
        new.append(&vec![0; entries as usize * 8]);
        new
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        self.bytes[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    }

    fn put32(&mut self, at: u64, value: u32) {
        self.put(at, &value.to_be_bytes());
    }

    fn put64(&mut self, at: u64, value: u64) {
        self.put(at, &value.to_be_bytes());
    }

    /// Appends bytes. Returns their offset.
    fn append(&mut self, bytes: &[u8]) -> u64 {
        let at = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        at
    }

    /// Appends a cluster full of `byte` at the next sector.
    fn append_data(&mut self, byte: u8) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self.append(&vec![byte; 1 << self.cluster_bits])
    }

    fn l1_entry_at(&self, guest: u64) -> u64 {
        512 + (guest >> (self.cluster_bits + self.l2_bits)) * 8
    }

    /// Sets the L2 entry of a guest offset, and creates its L2 table if needed. Returns the offset of
    /// the entry.
    fn map(&mut self, guest: u64, entry: u64) -> u64 {
        let l1_entry = self.l1_entry_at(guest);
        let mut l2 = u64::from_be_bytes(self.bytes[l1_entry as usize..][..8].try_into().unwrap());
        if l2 == 0 {
            l2 = self.append(&vec![0; 8 << self.l2_bits]);
            self.put64(l1_entry, l2);
        }
        let at = l2 + ((guest >> self.cluster_bits) & ((1 << self.l2_bits) - 1)) * 8;
        self.put64(at, entry);
        at
    }

    fn compressed(&self, offset: u64, length: u64) -> u64 {
        1 << 63 | length << (63 - self.cluster_bits) | offset
    }
}

impl Built for Builder {
    fn open(&self) -> Result<Image> {
        let options = OpenOptions::new().format(Format::Qcow1);
        options.open_storage(Box::new(Memory(self.bytes.clone())), "test.qcow")
    }
}

/// 40 KiB of content in clusters of 1 KiB, 64 under each L1 entry.
fn image() -> Builder {
    Builder::new(10, 6, 1 << 20)
}

fn deflate(content: &[u8]) -> Vec<u8> {
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::best());
    let mut stream = vec![0; compressor.deflate_compress_bound(content.len())];
    let length = compressor.deflate_compress(content, &mut stream).unwrap();
    stream.truncate(length);
    stream
}

#[test]
fn magic_version_and_length() {
    assert_eq!(image().open().unwrap().format(), Format::Qcow1);
    let mut builder = image();
    builder.put(3, b" ");
    refused(&builder, ErrorKind::Format, "is not a qcow image");
    for version in [0, 2, 3, u32::MAX] {
        let mut builder = image();
        builder.put32(4, version);
        refused(&builder, ErrorKind::Format, "is a qcow2 image");
    }
    for (length, kind) in [(3, ErrorKind::Format), (4, ErrorKind::Format), (47, ErrorKind::Corrupt)]
    {
        let mut builder = image();
        builder.bytes.truncate(length);
        refused(&builder, kind, "test.qcow");
    }
}

#[test]
fn encryption() {
    for method in [1, 2, u32::MAX] {
        let mut builder = image();
        builder.put32(36, method);
        refused(&builder, ErrorKind::Unsupported, "is encrypted");
    }
}

#[test]
fn sizes_of_clusters_and_tables() {
    for (bits, l2_bits, says) in [(8, 6, "cluster size"), (17, 6, "cluster"), (255, 6, "cluster")]
        .into_iter()
        .chain([(9, 5, "L2 table"), (16, 14, "L2 table"), (9, 255, "L2 table"), (9, 0, "L2 table")])
    {
        let mut builder = image();
        builder.put(32, &[bits, l2_bits]);
        refused(&builder, ErrorKind::Corrupt, says);
    }
    for (bits, l2_bits) in [(9, 6), (9, 13), (16, 6), (16, 13)] {
        let mut builder = Builder::new(bits, l2_bits, 1 << 20);
        let at = builder.append_data(7);
        builder.map((1 << 20) - 1, at);
        assert_eq!(byte(&builder, (1 << 20) - 1), 7);
    }
}

#[test]
fn virtual_size() {
    for (size, says) in [
        (0, "small"),
        (1, "small"),
        (1 << 44, "too large"),
        (1 << 63, "large"),
        (u64::MAX, "large"),
    ] {
        let mut builder = image();
        builder.put64(24, size);
        refused(&builder, ErrorKind::Corrupt, says);
    }
    for (size, floored) in [(2, 0), (511, 0), (512, 512), (1023, 512), (65535, 65024)] {
        let mut builder = image();
        builder.put64(24, size);
        assert_eq!(builder.open().unwrap().virtual_size(), floored);
    }
}

#[test]
fn l1_table_past_the_end() {
    let end = image().bytes.len() as u64;
    for offset in [end - 127, end, 1 << 40, u64::MAX, u64::MAX - 127] {
        let mut builder = image();
        builder.put64(40, offset);
        refused(&builder, ErrorKind::Corrupt, "L1 table lies past the end");
    }
    let mut builder = image();
    builder.put64(40, end - 128);
    assert!(builder.open().is_ok());
}

#[test]
fn data_and_nothing() {
    let mut builder = image();
    let at = builder.append_data(7);
    builder.append_data(8);
    builder.map(63 * K, at);
    builder.map(64 * K, at + K);
    builder.map(66 * K, at);
    let image = builder.open().unwrap();
    let mut extents = Vec::new();
    let mut offset = 0;
    while offset < image.size() {
        let extent = image.extent(offset, u64::MAX).unwrap();
        extents.push((extent.offset / K, extent.length / K, extent.kind));
        offset = extent.end();
    }
    use ExtentKind::{Data, Zero};
    assert_eq!(
        extents,
        [(0, 63, Zero), (63, 2, Data), (65, 1, Zero), (66, 1, Data), (67, 957, Zero)]
    );
    let mut bytes = vec![1; 5 << 10];
    image.read_exact_at(&mut bytes, 62 * K).unwrap();
    let expected: Vec<u8> = [0, 7, 8, 0, 7].iter().flat_map(|byte| [*byte; K as usize]).collect();
    assert!(bytes == expected);
}

#[test]
fn l2_tables_past_the_end() {
    let end = image().bytes.len() as u64;
    for offset in [end, end - 511, 1 << 40, 1 << 63, u64::MAX] {
        let mut builder = image();
        builder.put64(builder.l1_entry_at(64 * K), offset);
        unreadable(&builder, 64 * K, "past the end");
        assert_eq!(byte(&builder, 64 * K - 1), 0);
    }
}

#[test]
fn l2_table_that_is_not_aligned() {
    let mut builder = image();
    let at = builder.append_data(7);
    builder.append(&[0; 3]);
    builder.map(K, at);
    assert_eq!([byte(&builder, K - 1), byte(&builder, K), byte(&builder, 2 * K)], [0, 7, 0]);
}

#[test]
fn clusters() {
    for offset in [1, 511, 513, (1 << 40) + 8, u64::MAX >> 1] {
        let mut builder = image();
        builder.map(K, offset);
        unreadable(&builder, K, "not aligned to a sector");
        assert_eq!(byte(&builder, 0), 0);
    }
    for offset in [1 << 40, 1 << 62, (1 << 63) - 512] {
        let mut builder = image();
        builder.map(K, offset);
        unreadable(&builder, K, "past the end");
    }
    // Only the bytes of the guest have to be present.
    let mut builder = Builder::new(16, 6, 70_000);
    builder.map(0, 0);
    let at = builder.append_data(7);
    builder.map(65536, at);
    let guest = 70_000 / 512 * 512 - 65536;
    builder.bytes.truncate(at as usize + guest);
    let mut bytes = vec![0; guest];
    builder.open().unwrap().read_exact_at(&mut bytes, 65536).unwrap();
    assert!(bytes == vec![7; guest]);
    builder.bytes.pop();
    unreadable(&builder, 65536 + guest as u64 - 1, "past the end");
}

#[test]
fn compressed_clusters() {
    let content: Vec<u8> = (0..K).map(|at| (at * at / 7) as u8).collect();
    let stream = deflate(&content);
    let mut builder = image();
    let at = builder.append(&stream);
    let data = builder.append_data(9);
    let entry = builder.compressed(at, stream.len() as u64);
    builder.map(K, entry);
    builder.map(2 * K, data);
    builder.map(3 * K, entry);
    let image = builder.open().unwrap();
    let mut bytes = vec![1; 5 << 10];
    image.read_exact_at(&mut bytes, 0).unwrap();
    let expected = [&[0; 1024][..], &content, &[9; 1024], &content, &[0; 1024]].concat();
    assert!(bytes == expected);
    let mut piece = [0; 100];
    image.read_exact_at(&mut piece, K + 500).unwrap();
    assert!(piece == content[500..600]);
}

#[test]
fn compressed_clusters_that_are_damaged() {
    let content: Vec<u8> = (0..K).map(|at| (at * at / 7) as u8).collect();
    let stream = deflate(&content);
    let length = stream.len() as u64;
    let mut builder = image();
    builder.map(0, 0);
    let at = builder.append(&stream);
    let end = at + length;
    for (offset, length, says) in [
        (at, 0, "has no bytes"),
        (at, length / 2, "cannot be decompressed"),
        (at + 1, length - 1, "cannot be decompressed"),
        (at, length + 1, "past the end"),
        (end, 1, "past the end"),
        (1 << 50, 100, "past the end"),
    ] {
        builder.map(0, builder.compressed(offset, length));
        unreadable(&builder, 0, says);
    }
    // Bytes after the stream are padding.
    builder.append(&[0xff; 10]);
    builder.map(0, builder.compressed(at, length + 10));
    assert_eq!(byte(&builder, 1023), content[1023]);
    builder.map(0, builder.compressed(at, length + 11));
    unreadable(&builder, 0, "past the end");
}

#[test]
fn backing_file() {
    let named = |offset, length| {
        let mut builder = image();
        builder.put64(8, offset);
        builder.put32(16, length);
        builder.put(100, b"base");
        builder
    };
    let error = refused(&named(100, 4), ErrorKind::Reference, "\"base\"");
    assert_eq!(error.hint(), Some(Hint::BackingFormat));
    refused(&named(100, 1024), ErrorKind::Corrupt, "longer than 1023 bytes");
    let end = image().bytes.len() as u64;
    for (offset, length) in [(end - 3, 4), (end, 4), (1 << 40, 4), (u64::MAX, 4), (1 << 63, 0)] {
        refused(&named(offset, length), ErrorKind::Corrupt, "past the end");
    }
    for (offset, length) in [(0, 4), (100, 0), (0, 0)] {
        assert_eq!(byte(&named(offset, length), 0), 0);
    }
}

#[test]
fn large_images_without_data() {
    let builder = Builder::new(16, 13, 1 << 50);
    let image = builder.open().unwrap();
    let (mut offset, mut calls) = (0, 0);
    while offset < image.size() {
        let extent = image.extent(offset, u64::MAX).unwrap();
        assert_eq!(extent.kind, ExtentKind::Zero);
        (offset, calls) = (extent.end(), calls + 1);
    }
    assert!(offset == 1 << 50 && calls <= 512, "{calls}");
}
