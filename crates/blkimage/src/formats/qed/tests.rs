//! A test for each rule of the format, named after the violation.

use crate::formats::builder::{Built, byte, refused, unreadable};
use crate::{ErrorKind, ExtentKind, Format, Hint, Image, Memory, OpenOptions, Result, Source};

const K: u64 = 1024;
/// Bytes under one L2 entry and one L1 entry.
const CLUSTER: u64 = 4 * K;
const SPAN: u64 = 1024 * CLUSTER;

/// An image with clusters of 4 KiB and tables of two: the header in cluster 0, the L1 table at 4 KiB.
struct Builder {
    bytes: Vec<u8>,
}

impl Builder {
    fn new(size: u64) -> Self {
        let mut new = Self { bytes: vec![0; 3 * CLUSTER as usize] };
        new.put(0, b"QED\0");
        new.put32(4, CLUSTER as u32);
        new.put32(8, 2);
        new.put32(12, 1);
        new.put64(40, CLUSTER);
        new.put64(48, size);
        new
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        self.bytes[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    }

    fn put32(&mut self, at: u64, value: u32) {
        self.put(at, &value.to_le_bytes());
    }

    fn put64(&mut self, at: u64, value: u64) {
        self.put(at, &value.to_le_bytes());
    }

    /// Appends clusters full of `byte`. Returns their offset.
    fn append(&mut self, byte: u8, clusters: u64) -> u64 {
        let at = self.bytes.len() as u64;
        self.bytes.resize((at + clusters * CLUSTER) as usize, byte);
        at
    }

    fn l1_entry_at(guest: u64) -> u64 {
        CLUSTER + guest / SPAN * 8
    }

    /// Sets the L2 entry of a guest offset, and creates its L2 table if needed. Returns the offset of
    /// the table.
    fn map(&mut self, guest: u64, entry: u64) -> u64 {
        let at = Self::l1_entry_at(guest);
        let mut l2 = u64::from_le_bytes(self.bytes[at as usize..][..8].try_into().unwrap());
        if l2 == 0 {
            l2 = self.append(0, 2);
            self.put64(at, l2);
        }
        self.put64(l2 + guest % SPAN / CLUSTER * 8, entry);
        l2
    }
}

impl Built for Builder {
    fn open(&self) -> Result<Image> {
        let options = OpenOptions::new().format(Format::Qed);
        options.open_storage(Box::new(Memory(self.bytes.clone())), "test.qed")
    }
}

fn image() -> Builder {
    Builder::new(64 * SPAN)
}

#[test]
fn magic_and_length() {
    assert_eq!(image().open().unwrap().format(), Format::Qed);
    let mut builder = image();
    builder.put(3, b" ");
    refused(&builder, ErrorKind::Format, "is not a qed image");
    for (length, kind) in
        [(3, ErrorKind::Format), (4, ErrorKind::Corrupt), (63, ErrorKind::Corrupt)]
    {
        let mut builder = image();
        builder.bytes.truncate(length);
        refused(&builder, kind, "test.qed");
    }
}

#[test]
fn unknown_features() {
    for bit in 3..64 {
        let mut builder = image();
        builder.put64(16, 1 << bit);
        refused(&builder, ErrorKind::Unsupported, &format!("unknown features {:#x}", 1_u64 << bit));
    }
    // No compatible or autoclear feature matters to a reader.
    let mut builder = image();
    builder.put64(24, u64::MAX);
    builder.put64(32, u64::MAX);
    assert_eq!(byte(&builder, 0), 0);
    assert!(builder.open().unwrap().warnings().is_empty());
}

#[test]
fn not_closed() {
    let mut builder = image();
    builder.put64(16, 2);
    assert!(builder.open().unwrap().warnings()[0].reason.contains("was not closed"));
}

#[test]
fn sizes_of_clusters_and_tables() {
    for size in [0, 1, 512, 2048, 4097, 12288, 128 << 20, 1 << 31, u32::MAX] {
        let mut builder = image();
        builder.put32(4, size);
        refused(&builder, ErrorKind::Corrupt, "cluster size");
    }
    for size in [0, 1, 3, 17, 32, u32::MAX] {
        let mut builder = image();
        builder.put32(8, size);
        refused(&builder, ErrorKind::Unsupported, "tables of");
    }
    let mut builder = image();
    builder.put32(12, 1 << 20);
    refused(&builder, ErrorKind::Corrupt, "larger than 4 GiB");
}

#[test]
fn virtual_size() {
    for size in [1, 511, SPAN + 1, SPAN * 1024 + 512, 1 << 62, u64::MAX, u64::MAX << 9] {
        refused(&Builder::new(size), ErrorKind::Corrupt, "virtual size");
    }
    assert_eq!(Builder::new(0).open().unwrap().virtual_size(), 0);
    assert_eq!(Builder::new(1536).open().unwrap().virtual_size(), 1536);
    assert_eq!(Builder::new(SPAN * 1024).open().unwrap().virtual_size(), SPAN * 1024);
    // With the largest clusters and tables, the limit does not fit in 64 bits.
    let mut builder = image();
    builder.put32(4, 64 << 20);
    builder.put32(8, 16);
    refused(&builder, ErrorKind::Corrupt, "larger than its tables can map");
    builder.put32(8, 2);
    builder.put64(48, u64::MAX << 9);
    refused(&builder, ErrorKind::Corrupt, "larger than its tables can map");
}

#[test]
fn l1_table() {
    for (offset, says) in [
        (0, "lies in the header"),
        (CLUSTER + 8, "is not aligned"),
        (2 * CLUSTER, "past the end"),
        (3 * CLUSTER, "past the end"),
        (1 << 62, "past the end"),
        (u64::MAX - CLUSTER + 1, "past the end"),
    ] {
        let mut builder = image();
        builder.put64(40, offset);
        refused(&builder, ErrorKind::Corrupt, says);
    }
    let mut builder = image();
    builder.bytes.pop();
    refused(&builder, ErrorKind::Corrupt, "past the end");
}

#[test]
fn data_zeros_and_nothing() {
    let mut builder = image();
    let at = builder.append(7, 2);
    builder.map(SPAN - CLUSTER, at);
    builder.map(SPAN, at + CLUSTER);
    builder.map(SPAN + CLUSTER, 1);
    builder.map(SPAN + 3 * CLUSTER, at);
    let image = builder.open().unwrap();
    let mut offset = 0;
    let mut extents = Vec::new();
    while offset < image.size() {
        let extent = image.extent(offset, u64::MAX).unwrap();
        extents.push((extent.offset, extent.length, extent.kind));
        offset = extent.end();
    }
    use ExtentKind::{Data, Zero};
    assert_eq!(
        extents,
        [
            (0, SPAN - CLUSTER, Zero),
            (SPAN - CLUSTER, 2 * CLUSTER, Data),
            (SPAN + CLUSTER, 2 * CLUSTER, Zero),
            (SPAN + 3 * CLUSTER, CLUSTER, Data),
            (SPAN + 4 * CLUSTER, 62 * SPAN + 1020 * CLUSTER, Zero),
        ]
    );
    let mut bytes = vec![1; 6 * CLUSTER as usize];
    image.read_exact_at(&mut bytes, SPAN - 2 * CLUSTER).unwrap();
    let expected: Vec<u8> =
        [0, 7, 7, 0, 0, 7].iter().flat_map(|byte| [*byte; CLUSTER as usize]).collect();
    assert!(bytes == expected);
}

#[test]
fn neighbours_are_joined_only_if_contiguous() {
    let mut builder = image();
    let (a, b) = (builder.append(1, 1), builder.append(2, 1));
    for (index, host) in [a, b, a, a, b].into_iter().enumerate() {
        builder.map(index as u64 * CLUSTER, host);
    }
    let mut bytes = vec![0; 5 * CLUSTER as usize];
    builder.open().unwrap().read_exact_at(&mut bytes, 0).unwrap();
    let expected: Vec<u8> =
        [1, 2, 1, 1, 2].iter().flat_map(|byte| [*byte; CLUSTER as usize]).collect();
    assert!(bytes == expected);
}

#[test]
fn l2_tables() {
    for (offset, says) in [
        (8, "is not aligned"),
        (CLUSTER + 1, "is not aligned"),
        (2 * CLUSTER, "past the end"),
        (1 << 40, "past the end"),
        (u64::MAX, "is not aligned"),
        (u64::MAX << 12, "past the end"),
    ] {
        let mut builder = image();
        builder.put64(Builder::l1_entry_at(SPAN), offset);
        unreadable(&builder, SPAN, says);
        assert_eq!(byte(&builder, SPAN - 1), 0);
    }
    let mut builder = image();
    builder.put32(12, 2);
    builder.put64(40, 2 * CLUSTER);
    builder.append(0, 1);
    builder.put64(2 * CLUSTER, CLUSTER);
    unreadable(&builder, 0, "lies in the header");
    // A table whose last cluster is cut off.
    let mut builder = image();
    let l2 = builder.map(0, 1);
    builder.bytes.truncate((l2 + 2 * CLUSTER) as usize - 1);
    unreadable(&builder, 0, "past the end");
}

#[test]
fn clusters() {
    for (offset, says) in [
        (2, "is not aligned"),
        (CLUSTER + 512, "is not aligned"),
        (1 << 40, "past the end"),
        (u64::MAX, "is not aligned"),
        (u64::MAX << 12, "past the end"),
    ] {
        let mut builder = image();
        builder.map(CLUSTER, offset);
        unreadable(&builder, CLUSTER, says);
        assert_eq!(byte(&builder, 0), 0);
    }
    // QEMU requires a whole cluster.
    let mut builder = image();
    let at = builder.append(7, 1);
    builder.map(0, 1);
    let last = builder.append(7, 1);
    builder.map(0, at);
    builder.map(CLUSTER, last);
    assert_eq!(byte(&builder, 2 * CLUSTER - 1), 7);
    builder.bytes.pop();
    assert_eq!(byte(&builder, 0), 7);
    unreadable(&builder, CLUSTER, "past the end");
    // The header may have several clusters, and be no cluster of the guest.
    let mut builder = image();
    builder.put32(12, 2);
    builder.put64(40, 2 * CLUSTER);
    builder.append(0, 1);
    let l2 = builder.append(0, 2);
    builder.put64(2 * CLUSTER, l2);
    builder.put64(l2, CLUSTER);
    unreadable(&builder, 0, "lies in the header");
}

#[test]
fn backing_file() {
    let named = |features, offset, length| {
        let mut builder = image();
        builder.put64(16, features);
        builder.put32(56, offset);
        builder.put32(60, length);
        builder.put(1000, b"base");
        builder
    };
    let error = refused(&named(1, 1000, 4), ErrorKind::Reference, "\"base\"");
    assert_eq!(error.hint(), Some(Hint::BackingFormat));
    let error = refused(&named(5, 1000, 4), ErrorKind::Reference, "name the image by its path");
    assert_eq!(error.hint(), None);
    for (offset, length) in [(4093, 4), (4096, 1), (0, 4097), (u32::MAX, u32::MAX)] {
        refused(&named(1, offset, length), ErrorKind::Corrupt, "in the header");
    }
    refused(&named(1, 1000, 1024), ErrorKind::Corrupt, "longer than 1023 bytes");
    for (features, length) in [(0, 4), (4, 4), (1, 0)] {
        assert_eq!(byte(&named(features, 1000, length), 0), 0);
    }
}

#[test]
fn largest_virtual_size() {
    let mut builder = Builder::new(1 << 62);
    builder.put32(4, 1 << 20);
    builder.put32(8, 16);
    builder.put64(40, 1 << 20);
    builder.bytes.resize(17 << 20, 0);
    let image = builder.open().unwrap();
    let (mut offset, mut calls) = (0, 0);
    while offset < image.size() {
        let extent = image.extent(offset, u64::MAX).unwrap();
        assert_eq!(extent.kind, ExtentKind::Zero);
        (offset, calls) = (extent.end(), calls + 1);
    }
    assert!(offset == 1 << 62 && calls <= 512, "{calls}");
}

/// Each lookup would otherwise cost as much as many clusters of zeros, and tables can be shared.
#[test]
fn zeros_that_alternate_with_unallocated_clusters_are_one_run() {
    let mut builder = image();
    for guest in (0..SPAN).step_by(2 * CLUSTER as usize) {
        builder.map(guest, 1);
    }
    let image = builder.open().unwrap();
    let extent = image.extent(0, SPAN).unwrap();
    assert_eq!((extent.kind, extent.length), (ExtentKind::Zero, SPAN));
}
