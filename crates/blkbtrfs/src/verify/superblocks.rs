//! Verifies every copy of the superblock on every device, and that no device is truncated.

use super::finding::{Finding, Place, Problem, Subject};
use super::job::Job;
use super::summary::add;
use crate::superblock::{OFFSETS, SIZE, Superblock, SuperblockDefect};

/// Reports copies that are not intact, or not of the last transaction of this file system.
pub(super) fn verify(job: &Job<'_>) {
    for (&device, known) in job.filesystem.devices() {
        let Some(copies) = job.filesystem.superblock_copies(device) else { continue };
        let own = job.filesystem.device_items().get(&device).map(|item| item.total_bytes);
        let size = own.filter(|size| *size >= OFFSETS[0] + SIZE as u64);
        if let Some(size) = size.filter(|size| *size > known.source.size()) {
            report_short(job, device, size, known.source.size());
        }
        // Copies on a seed are compared with the seed's own superblock.
        let newest = job.filesystem.superblock_of(device).unwrap_or(job.filesystem.superblock());
        let defects: Vec<_> = OFFSETS
            .iter()
            .zip(&copies)
            // If a device shrank, data after its end is no longer a copy.
            .filter(|(offset, _)| size.is_none_or(|size| *offset + SIZE as u64 <= size))
            .filter_map(|(_, copy)| copy.as_ref())
            .map(|copy| match copy {
                Ok(superblock) => compare(superblock, newest),
                Err(defect) => Some(defect.clone()),
            })
            .collect();
        let defects = without_interrupted(defects);
        add(&job.counters.superblocks, defects.len() as u64);
        add(&job.counters.checksums, defects.len() as u64);
        let good = || (1..).zip(&defects).filter(|(_, it)| it.is_none()).map(|(number, _)| number);
        for ((number, defect), offset) in (0..).zip(&defects).zip(OFFSETS) {
            let Some(defect) = defect else { continue };
            job.report(Finding {
                place: Some(Place { mirror: number + 1, device, physical: offset }),
                mirrors: defects.len() as u32,
                good_mirrors: good().collect(),
                ..Finding::new(
                    Subject::Superblock(number),
                    Problem::Superblock(defect.clone()),
                    SIZE as u64,
                )
            });
        }
    }
}

fn report_short(job: &Job<'_>, device: u64, expected: u64, found: u64) {
    job.report(Finding {
        place: Some(Place { mirror: 1, device, physical: found }),
        mirrors: 1,
        ..Finding::new(Subject::Device, Problem::Short { found }, expected)
    });
}

/// Drops the defects of copies that are one transaction older than a good first superblock. That is
/// the state after a crash, or at an instant, between the writes of a commit. A mount reads the
/// first superblock. If that is the older one, a mount loses the last transaction.
fn without_interrupted(
    mut defects: Vec<Option<SuperblockDefect>>,
) -> Vec<Option<SuperblockDefect>> {
    if defects.first().is_some_and(Option::is_none) {
        defects.iter_mut().for_each(|it| *it = it.take().filter(|it| !is_of_previous(it)));
    }
    defects
}

fn is_of_previous(defect: &SuperblockDefect) -> bool {
    matches!(defect, SuperblockDefect::Generation { expected, found } if found.checked_add(1) == Some(*expected))
}

/// Returns the defect of an intact superblock relative to the newest one, if any.
fn compare(superblock: &Superblock, newest: &Superblock) -> Option<SuperblockDefect> {
    if superblock.fsid != newest.fsid {
        return Some(SuperblockDefect::Fsid(superblock.fsid));
    }
    let (expected, found) = (newest.generation, superblock.generation);
    if expected != found {
        return Some(SuperblockDefect::Generation { expected, found });
    }
    superblock.difference(newest).map(|offset| SuperblockDefect::Differs { offset })
}
