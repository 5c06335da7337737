use std::ops::ControlFlow;

use blkimage::{Error, ErrorKind, Extent, ExtentKind, Format, Memory, OpenOptions};
use proptest::prelude::*;

use super::*;
use crate::{Finding, FindingKind, Place, Progress, Verdict};

#[derive(Default)]
struct Kept {
    findings: Vec<(Place, Finding)>,
    rows: Vec<Row>,
}

impl Sink for Kept {
    fn finding(&mut self, place: &Place, _: &'static str, finding: &Finding) {
        self.findings.push((place.clone(), finding.clone()));
    }

    fn row(&mut self, row: &Row) {
        self.rows.push(row.clone());
    }
}

fn disk(bytes: Vec<u8>) -> Arc<dyn Source> {
    let options = OpenOptions::new().format(Format::Raw);
    Arc::new(options.open_storage(Box::new(Memory(bytes)), "disk").unwrap())
}

fn go_on(_: &Progress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn run(disk: &Arc<dyn Source>) -> (Report, Kept) {
    let mut kept = Kept::default();
    let report = check(disk, &Options::default(), &go_on, &mut kept).unwrap();
    assert_eq!(kept.rows, report.rows);
    (report, kept)
}

/// Creates an MBR with entries: type, start and count in sectors.
fn mbr(size: usize, entries: &[(u8, u32, u32)]) -> Vec<u8> {
    let mut bytes = vec![0; size];
    for (index, (kind, start, count)) in entries.iter().enumerate() {
        let entry = &mut bytes[446 + 16 * index..][..16];
        entry[4] = *kind;
        entry[8..12].copy_from_slice(&start.to_le_bytes());
        entry[12..].copy_from_slice(&count.to_le_bytes());
    }
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    bytes
}

#[test]
fn partitions_of_an_mbr() {
    let mut bytes =
        mbr(1 << 20, &[(0x82, 64, 128), (0x8e, 256, 64), (0x83, 2000, 100), (0x83, 1 << 30, 1)]);
    bytes[64 * 512 + 4086..][..10].copy_from_slice(b"SWAPSPACE2");
    bytes[256 * 512] = 1;
    let (report, kept) = run(&disk(bytes));
    let kinds: Vec<_> = report.rows.iter().map(|row| (row.kind, row.verdict())).collect();
    let expected = [
        ("MBR", Verdict::Clean),
        ("swap", Verdict::Clean),
        // Its type is LVM.
        ("unknown", Verdict::Incomplete),
        // It is cut off, and the next one is past the end.
        ("unknown", Verdict::Incomplete),
        ("unknown", Verdict::Incomplete),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(report.verdict(), Verdict::Incomplete);
    assert_eq!(report.rows[1].unprotected, Some(128 * 512));
    assert_eq!(kept.findings.len(), 3);
    assert_eq!(kept.findings[0].1.disk_offset, 256 * 512);
}

#[test]
fn overlapping_partitions_are_not_verified_over_and_over() {
    let bytes = mbr(1 << 16, &[(0x99, 8, 120); 4]);
    assert_eq!(run(&disk(bytes)).0.verdict(), Verdict::Clean);
    let mut logical = mbr(1 << 16, &[(0x05, 8, 100)]);
    for index in 0..20_usize {
        let record = mbr(512, &[(0x83, 1, 100), (0x05, index as u32 + 1, 100)]);
        logical[(8 + index) * 512..][..512].copy_from_slice(&record);
    }
    let (report, kept) = run(&disk(logical));
    assert!(report.verdict() >= Verdict::Incomplete);
    assert!(kept.findings.iter().any(|(_, finding)| finding.reason.contains("overlap")));
}

#[test]
fn findings_are_limited() {
    let bytes = mbr(1 << 20, &[(0x83, 1 << 30, 1), (0x83, 1 << 30, 1), (0x83, 1 << 30, 1)]);
    let mut kept = Kept::default();
    let options = Options::default().with_max_findings(Some(2));
    let report = check(&disk(bytes), &options, &go_on, &mut kept).unwrap();
    assert_eq!(kept.findings.len(), 2);
    assert_eq!(report.rows.iter().map(|row| row.unreadable).sum::<u64>(), 3);
}

/// A disk that cannot be read.
struct Broken(ErrorKind);

impl Source for Broken {
    fn size(&self) -> u64 {
        1 << 20
    }

    fn extent(&self, offset: u64, length: u64) -> blkimage::Result<Extent> {
        Ok(Extent { offset, length, kind: ExtentKind::Data })
    }

    fn read_exact_at(&self, _: &mut [u8], offset: u64) -> blkimage::Result<()> {
        Err(Error::new(self.0, "disk", "broken").at(offset))
    }
}

#[test]
fn unreadable_disks() {
    let broken: Arc<dyn Source> = Arc::new(Broken(ErrorKind::Io));
    let (report, kept) = run(&broken);
    assert_eq!(report.verdict(), Verdict::Incomplete);
    assert_eq!(kept.findings[0].1.kind, FindingKind::Unreadable);
    let changed: Arc<dyn Source> = Arc::new(Broken(ErrorKind::Changed));
    let failed = check(&changed, &Options::default(), &go_on, &mut ());
    assert!(matches!(failed, Err(crate::Error::Image(_))));
}

proptest! {
    #[test]
    fn any_disk_is_checked(
        bytes in proptest::collection::vec(any::<u8>(), 0..4096),
        magic in proptest::sample::select(vec![
            (0, &b"LUKS\xba\xbe\0\x02"[..]), (512, b"LABELONE"), (24, b"LVM2 001"), (0, b"verity\0\0"),
            (512, b"EFI PART"), (510, b"\x55\xaa"), (1024, b"\xe2\xe1\xf5\xe0"),
        ]),
    ) {
        let mut bytes = bytes;
        bytes.resize(65536 * 2, 0);
        bytes[magic.0..][..magic.1.len()].copy_from_slice(magic.1);
        prop_assert!(!run(&disk(bytes)).0.rows.is_empty());
    }
}
