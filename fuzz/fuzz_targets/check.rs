//! Verifies disks, any bytes of whose structures are changed. The verdict must be what the rows say, and the rows must count
//! the findings.

#![no_main]

mod disk;

use std::ops::ControlFlow;
use std::sync::Arc;

use blkcheck::{Finding, FindingKind, Options, Place, Report, Row, Sink, Verdict};
use blkimage::Source;
use disk::{Disk, Disks, assert_one_line, is_whole};
use libfuzzer_sys::fuzz_target;

static DISKS: Disks = Disks::new(|| {
    let encoded: [&[u8]; 10] = [
        include_bytes!("../images/gpt.z"),
        include_bytes!("../images/lvm.z"),
        include_bytes!("../images/luks2.z"),
        include_bytes!("../images/verity.z"),
        include_bytes!("../images/btrfs.z"),
        include_bytes!("../images/mbr.z"),
        include_bytes!("../images/ext4.z"),
        include_bytes!("../images/exfat.z"),
        include_bytes!("../images/ntfs.z"),
        include_bytes!("../images/xfs5.z"),
    ];
    encoded.map(Disk::new).into()
});

fuzz_target!(|data: &[u8]| {
    let Some(disk) = disk::of_input(&DISKS, data) else { return };
    let disk: Arc<dyn Source> = Arc::new(disk);
    let (report, counts) = run(&disk, None);
    for (row, counts) in report.rows.iter().zip(&counts.rows) {
        let counted = [row.mismatches, row.damaged, row.unreadable, row.skipped];
        for (counted, passed) in counted.into_iter().zip(*counts) {
            // Of a layer with very many, some are only counted.
            assert!(counted == passed || counted > passed && passed >= 100, "{row:?} {counts:?}");
        }
        let verdict = match counted {
            [0, 0, 0, 0] => Verdict::Clean,
            [0, 0, _, _] => Verdict::Incomplete,
            _ => Verdict::Damaged,
        };
        assert_eq!(row.verdict(), verdict);
        assert!(row.verified.iter().all(|it| it.count > 0));
        row.remarks.iter().for_each(|it| assert_one_line(it));
    }
    assert_eq!(Some(report.verdict()), report.rows.iter().map(Row::verdict).max());
    if is_whole(&DISKS, data) {
        // The GPT has data of dm-verity whose tree follows it, which is not recognised.
        assert_ne!(report.verdict(), Verdict::Damaged, "{report:?}");
        let skipped: u64 = report.rows.iter().map(|row| row.skipped).sum();
        assert!(skipped <= 1, "{report:?}");
    }
    // With less output, all are still counted.
    let (short, counts) = run(&disk, Some(1));
    assert_eq!(short, report);
    let findings: usize = counts.findings;
    assert!(findings <= 1 && (findings == 1) == (report.verdict() != Verdict::Clean));
});

fn run(disk: &Arc<dyn Source>, max_findings: Option<u64>) -> (Report, Counts) {
    let options = Options::default().with_threads(1).with_max_findings(max_findings);
    let watch = |_: &blkcheck::Progress<'_>| ControlFlow::Continue(());
    let mut counts = Counts::default();
    let report = blkcheck::check(disk, &options, &watch, &mut counts).unwrap();
    assert!(!report.rows.is_empty() && report.rows == counts.seen);
    (report, counts)
}

/// Counts of findings by kind: mismatches, damage, what cannot be read, and what is skipped.
#[derive(Default)]
struct Counts {
    seen: Vec<Row>,
    rows: Vec<[u64; 4]>,
    open: [u64; 4],
    findings: usize,
    place: Option<Place>,
}

impl Sink for Counts {
    fn finding(&mut self, place: &Place, _: &'static str, finding: &Finding) {
        assert_one_line(&finding.reason);
        assert!(finding.count > 0 && finding.paths.len() <= 16);
        self.open[match finding.kind {
            FindingKind::Mismatch => 0,
            FindingKind::Damaged => 1,
            FindingKind::Unreadable => 2,
            FindingKind::Skipped => 3,
        }] += finding.count;
        self.findings += 1;
        assert_eq!(self.place.get_or_insert_with(|| place.clone()), place);
    }

    fn row(&mut self, row: &Row) {
        assert!(self.place.take().is_none_or(|place| place == row.place));
        self.rows.push(std::mem::take(&mut self.open));
        self.seen.push(row.clone());
    }
}
