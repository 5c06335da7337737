use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::*;
use crate::check::{Finding, Severity};
use crate::formats::qcow2::builder::Builder;
use crate::formats::qcow2::entry::{COMPRESSED, COPIED};
use crate::storage::{Memory, Storage};

const CLUSTER: u64 = 512;

#[derive(Default)]
struct Found(Vec<Finding>);

impl Visitor for Found {
    fn finding(&mut self, finding: Finding) {
        self.0.push(finding);
    }
}

/// Appends a table and a block of counts of `1 << order` bits to an image of fewer clusters than the block describes. All are
/// 1, but for those in `counts`.
fn put_refcounts(builder: &mut Builder, order: u32, counts: &[(u64, u64)]) {
    let table = builder.append(&[0; 8]);
    let block = builder.append(&[0; 8]);
    builder.put64(48, table);
    builder.put32(56, 1);
    builder.put32(96, order);
    builder.put64(table, block);
    let size = block - table;
    let clusters = (builder.bytes.len() as u64 / size).min((size * 8) >> order);
    for cluster in 0..clusters {
        let count = counts.iter().find(|(number, _)| *number == cluster).map_or(1, |it| it.1);
        let bits = 1 << order;
        let bytes = count.to_be_bytes();
        if order < 3 {
            let at = (block + cluster * bits / 8) as usize;
            builder.bytes[at] |= (count << (cluster * bits % 8)) as u8;
        } else {
            let width = bits / 8;
            builder.put(block + cluster * width, &bytes[8 - width as usize..]);
        }
    }
}

fn file(storage: impl Storage + 'static) -> HostFile {
    HostFile::new("test.qcow2".into(), Box::new(storage), Arc::default())
}

fn check_bytes(bytes: &[u8], budget: usize) -> (Vec<Finding>, Summary) {
    let mut found = Found::default();
    let summary = check_within(&file(Memory(bytes.to_vec())), &mut found, budget).unwrap();
    for severity in [Severity::Error, Severity::Outdated, Severity::Leak, Severity::Unchecked] {
        let sum: u64 = found.0.iter().filter(|it| it.severity == severity).map(|it| it.count).sum();
        let stated = match severity {
            Severity::Error => summary.errors,
            Severity::Outdated => summary.outdated,
            Severity::Leak => summary.leaks,
            Severity::Unchecked => summary.unchecked,
        };
        assert_eq!(sum, stated);
    }
    (found.0, summary)
}

#[track_caller]
fn assert_clean(builder: &Builder) {
    let (found, summary) = check_bytes(&builder.bytes, BUDGET);
    assert_eq!(found, []);
    assert!(summary.is_complete);
}

/// An image with clusters of 512 bytes: header, L1 table, L2 table, two clusters of data.
fn builder() -> Builder {
    let mut builder = Builder::new(9, 64 << 10);
    builder.map(0, (3 * CLUSTER) | COPIED);
    builder.append_data(1);
    builder.map(512, (4 * CLUSTER) | COPIED);
    builder.append_data(2);
    builder
}

#[test]
fn clean_images() {
    for order in 0..=6 {
        let mut builder = builder();
        put_refcounts(&mut builder, order, &[]);
        assert_clean(&builder);
    }
    let mut builder = Builder::extended(14, 1 << 20);
    builder.map_extended(0, 3 << 14 | COPIED, 0xff00_00ff_0000_ff00 & 0xffff_0000_0000_ff00);
    builder.append_data(1);
    builder.map_extended(1 << 14, 0, 0xffff_0000_0000_0000);
    put_refcounts(&mut builder, 4, &[]);
    assert_clean(&builder);
    // The stream of the second cluster begins in the last sector of the first one.
    let mut builder = Builder::v2(12, 1 << 20);
    builder.map(0, COMPRESSED | 1 << 58 | ((3 << 12) + 3000));
    builder.map(4096, COMPRESSED | 1 << 58 | ((3 << 12) + 3900));
    builder.append(&[1; 8192]);
    put_refcounts(&mut builder, 4, &[(3, 2)]);
    assert_clean(&builder);
}

/// Checks that this makes exactly these findings: structure, guest offset, reason, count.
#[track_caller]
fn assert_found(
    builder: &Builder,
    expected: &[(&'static str, Option<u64>, Reason, u64)],
) -> Summary {
    let (found, summary) = check_bytes(&builder.bytes, BUDGET);
    let found: Vec<_> =
        found.into_iter().map(|it| (it.structure, it.guest, it.reason, it.count)).collect();
    assert_eq!(found, expected);
    summary
}

#[test]
fn wrong_counts() {
    let mut builder = builder();
    put_refcounts(&mut builder, 4, &[(1, 0), (2, 3), (4, 2)]);
    let copied = |stored| Reason::CopiedFlag { stored, is_set: true };
    let expected = [
        ("L1 table", Some(0), copied(3), 1),
        ("L2 table", Some(512), copied(2), 1),
        ("cluster", None, Reason::ReferenceCount { stored: 0, references: 1 }, 1),
        ("cluster", None, Reason::ReferenceCount { stored: 3, references: 1 }, 1),
        ("cluster", None, Reason::ReferenceCount { stored: 2, references: 1 }, 1),
    ];
    let summary = assert_found(&builder, &expected);
    assert_eq!((summary.errors, summary.leaks, summary.outdated), (3, 2, 0));
    // Counts of an image that was not closed.
    builder.put64(72, 1);
    let summary = assert_found(&builder, &expected);
    assert_eq!((summary.errors, summary.leaks, summary.outdated), (0, 2, 3));
    assert!(summary.is_dirty);
}

#[test]
fn overlaps() {
    let mut builder = builder();
    // Data in the header, and in a block of reference counts.
    builder.map(1024, COPIED | (6 * CLUSTER));
    builder.map(1536, 2 * CLUSTER);
    put_refcounts(&mut builder, 4, &[]);
    let references = |references| Reason::ReferenceCount { stored: 1, references };
    let expected = [
        ("L2 table", Some(1536), Reason::CopiedFlag { stored: 1, is_set: false }, 1),
        ("refcount block", None, Reason::SharedBlock { references: 2 }, 1),
        ("cluster", None, references(2), 1),
        ("cluster", None, references(2), 1),
    ];
    assert_found(&builder, &expected);
    // With a bit for each count, there is no room for another reference.
    put_refcounts(&mut builder, 0, &[]);
    let (found, summary) = check_bytes(&builder.bytes, BUDGET);
    assert_eq!((summary.errors, summary.leaks), (2, 1), "{found:?}");
    assert!(found.iter().any(|it| it.reason == Reason::TooManyReferences { references: 2 }));
}

#[test]
fn invalid_entries() {
    let target = 1 << 40;
    let cases = [
        ((4 * CLUSTER) | COPIED | 2, Reason::ReservedBits { entry: (4 * CLUSTER) | COPIED | 2 }),
        (target | COPIED, Reason::PastEnd { target, length: CLUSTER }),
        (COMPRESSED | target, Reason::PastEnd { target, length: CLUSTER }),
        (COMPRESSED | COPIED | (4 * CLUSTER), Reason::CopiedCompressed),
    ];
    for (entry, reason) in cases {
        let mut builder = builder();
        let at = builder.map(512, entry);
        put_refcounts(&mut builder, 4, &[]);
        let (found, _) = check_bytes(&builder.bytes, BUDGET);
        let found = found.into_iter().find(|it| it.reason == reason);
        let found = found.unwrap_or_else(|| panic!("{reason:?}"));
        assert_eq!((found.offset, found.length, found.guest), (at, 8, Some(512)));
    }
    let mut builder = Builder::new(12, 1 << 20);
    builder.map(0, ((3 << 12) + 512) | COPIED);
    builder.append(&[1; 8192]);
    put_refcounts(&mut builder, 4, &[]);
    let expected = [("L2 table", Some(0), Reason::Unaligned { target: (3 << 12) + 512 }, 1)];
    assert_found(&builder, &expected);
    let mut builder = Builder::v2(9, 64 << 10);
    builder.map(512, 1);
    put_refcounts(&mut builder, 4, &[]);
    assert_found(&builder, &[("L2 table", Some(512), Reason::ZeroFlag, 1)]);
    let mut builder = Builder::extended(14, 1 << 20);
    builder.map_extended(0, 3 << 14 | COPIED, 1 << 32 | 1);
    builder.append_data(1);
    builder.map_extended(1 << 14, 0, 2);
    builder.map_extended(2 << 14, COMPRESSED | 3 << 14, 2);
    put_refcounts(&mut builder, 4, &[]);
    let expected = [
        ("L2 table", Some(0), Reason::ContradictorySubclusters { bitmap: 1 << 32 | 1 }, 1),
        ("L2 table", Some(1 << 14), Reason::UnallocatedSubclusters { bitmap: 2 }, 1),
        ("L2 table", Some(2 << 14), Reason::CompressedSubclusters, 1),
    ];
    assert_found(&builder, &expected);
}

#[test]
fn invalid_blocks() {
    for (entry, reason) in [
        (6 * CLUSTER + 1, Reason::ReservedBits { entry: 6 * CLUSTER + 1 }),
        (1 << 50, Reason::PastEnd { target: 1 << 50, length: CLUSTER }),
    ] {
        let mut builder = builder();
        put_refcounts(&mut builder, 4, &[]);
        builder.put64(5 * CLUSTER, entry);
        let (found, _) = check_bytes(&builder.bytes, BUDGET);
        let found = found.iter().find(|it| it.structure == "refcount table");
        assert_eq!(found.unwrap().reason, reason);
    }
    // An entry at an offset that the system cannot read.
    let mut builder = builder();
    put_refcounts(&mut builder, 4, &[]);
    builder.put64(5 * CLUSTER, 1 << 63);
    let (found, summary) = check_bytes(&builder.bytes, BUDGET);
    assert_eq!((summary.errors, summary.unchecked, summary.leaks), (1, 7, 0));
    assert_eq!(found[1].reason, Reason::CountUnreadable);
}

/// An entry of a snapshot whose L1 table has one entry.
fn snapshot(l1: u64) -> [u8; 56] {
    let mut entry = [0; 56];
    entry[..8].copy_from_slice(&l1.to_be_bytes());
    entry[11] = 1;
    entry[39] = 16;
    entry
}

#[test]
fn snapshots_share_tables() {
    let mut builder = builder();
    let l1 = builder.append(&((2 * CLUSTER) | COPIED).to_be_bytes());
    let entries = [snapshot(l1), snapshot(l1), snapshot(l1)].concat();
    let table = builder.append(&entries);
    builder.put32(60, 3);
    builder.put64(64, table);
    let l1_entry = builder.l1_entry_at(0);
    builder.put64(l1_entry, 2 * CLUSTER);
    builder.map(0, 3 * CLUSTER);
    builder.map(512, (4 * CLUSTER) | 2);
    put_refcounts(&mut builder, 4, &[(2, 4), (3, 4), (4, 4), (5, 3)]);
    let reserved = Reason::ReservedBits { entry: (4 * CLUSTER) | 2 };
    // As often as the table is referenced.
    assert_found(&builder, &[("L2 table", Some(512), reserved, 4)]);
    builder.put32(table + 112 + 36, 8);
    let (found, _) = check_bytes(&builder.bytes, BUDGET);
    assert!(found.iter().any(|it| it.reason == Reason::IncompleteSnapshot), "{found:?}");
    builder.put32(table + 112 + 36, 4096);
    let (found, summary) = check_bytes(&builder.bytes, BUDGET);
    assert!(!summary.is_complete && summary.errors > 0 && summary.leaks == 0, "{found:?}");
}

#[test]
fn windows_find_the_same() {
    let mut builder = Builder::new(9, 4 << 20);
    for number in 0..8192 {
        let at = builder.append_data(1);
        let flag = if number % 3 == 0 { 0 } else { COPIED };
        builder.map(number * 512, at | flag | u64::from(number % 1000 == 0) << 1);
    }
    let (mut whole, expected) = check_bytes(&builder.bytes, BUDGET);
    let (mut found, summary) = check_bytes(&builder.bytes, 1);
    assert_eq!(summary, expected);
    let key = |it: &Finding| (it.offset, it.length, it.structure);
    // Clusters in a row may be split by windows.
    let offsets = |list: &mut Vec<Finding>| {
        list.sort_by_key(key);
        list.retain(|it| it.structure != "cluster");
    };
    offsets(&mut whole);
    offsets(&mut found);
    assert_eq!(found, whole);
}

#[test]
fn tables_that_are_named_often() {
    let mut builder = Builder::new(9, 128 << 30);
    let l2 = builder.append(&(3_u64 | COPIED).to_be_bytes());
    let entries = (128_u64 << 30) / (64 * 512);
    for index in 0..entries {
        builder.put64(CLUSTER + index * 8, l2);
    }
    let start = builder.append(&[]);
    for _ in 0..65536 {
        let mut entry = snapshot(CLUSTER);
        entry[8..12].copy_from_slice(&(entries as u32).to_be_bytes());
        builder.bytes.extend_from_slice(&entry);
    }
    builder.put32(60, 65536);
    builder.put64(64, start);
    put_refcounts(&mut builder, 4, &[]);
    let (found, _) = check_bytes(&builder.bytes, BUDGET);
    let reserved = found.iter().find(|it| matches!(it.reason, Reason::ReservedBits { .. }));
    assert_eq!(reserved.unwrap().count, entries + u64::from(u32::MAX));
}

/// A storage whose bytes from `from` on cannot be read.
struct Broken {
    bytes: Memory,
    from: u64,
}

impl Storage for Broken {
    fn size(&self) -> u64 {
        self.bytes.size()
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset + buf.len() as u64 > self.from {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error()));
        }
        self.bytes.read_at_most(buf, offset)
    }
}

#[test]
fn unreadable_parts() {
    let mut builder = builder();
    put_refcounts(&mut builder, 4, &[]);
    for (cluster, structures) in [(2, &["refcount table", "L2 table"][..]), (6, &["cluster"])] {
        let bytes = Memory(builder.bytes.clone());
        let mut found = Found::default();
        let broken = file(Broken { bytes, from: cluster * CLUSTER });
        let summary = check(&broken, &mut found).unwrap();
        assert_eq!(summary.leaks, 0);
        let unchecked = found.0.iter().filter(|it| it.severity == Severity::Unchecked);
        assert_eq!(unchecked.map(|it| it.structure).collect::<Vec<_>>(), structures);
    }
}

#[test]
fn stops() {
    struct Stop;
    impl Visitor for Stop {
        fn finding(&mut self, _: Finding) {}
        fn advance(&mut self, _: u64) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    let mut builder = builder();
    put_refcounts(&mut builder, 4, &[]);
    let summary = check(&file(Memory(builder.bytes)), &mut Stop).unwrap();
    assert!(!summary.is_complete);
}
