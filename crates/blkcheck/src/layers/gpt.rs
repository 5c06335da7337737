//! Partition tables.

use blkimage::partition::{Defect, Gpt, Part};

use crate::finding::{Finding, FindingKind};
use crate::found::Layer;
use crate::report::Row;
use crate::tally::Job;

pub(crate) fn verify(job: &mut Job<'_>, layer: &Layer, gpt: &Gpt) -> Row {
    let mut tally = job.tally(layer, "GPT");
    for Part { structure, offset, length, defect, .. } in &gpt.parts {
        let name = structure.name();
        let kind = match defect {
            // The protective MBR has no checksum.
            None if *offset == 0 => continue,
            None => {
                tally.matched(name, 1, *length);
                continue;
            }
            Some(Defect::Checksum { .. }) => FindingKind::Mismatch,
            Some(Defect::Unreadable(_)) => FindingKind::Unreadable,
            Some(_) => FindingKind::Damaged,
        };
        let reason = defect.as_ref().map(ToString::to_string).unwrap_or_default();
        tally.finding(Finding { length: *length, ..Finding::new(kind, name, *offset, reason) });
    }
    for contradiction in &gpt.contradictions {
        tally.finding(Finding::new(FindingKind::Damaged, "partition table", 0, contradiction));
    }
    gpt.remarks.iter().for_each(|remark| tally.remark(remark));
    tally.finish()
}

/// A master boot record has no checksum.
pub(crate) fn of_mbr(job: &mut Job<'_>, layer: &Layer, lost: Option<&str>) -> Row {
    let mut tally = job.tally(layer, "MBR");
    if let Some(reason) = lost {
        tally.finding(Finding::new(FindingKind::Damaged, "partition table", 0, reason));
    }
    tally.finish()
}
