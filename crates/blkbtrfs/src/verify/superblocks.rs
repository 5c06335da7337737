//! Verifies every copy of the superblock on every device, and that no device is truncated.

use super::finding::{Finding, Place, Problem, Subject};
use super::job::Job;
use super::summary::add;
use crate::superblock::{OFFSETS, SIZE, Superblock, SuperblockDefect};

/// Reports copies that are not intact, not of their device, or not of the last transaction of this
/// file system.
pub(super) fn verify(job: &Job<'_>) {
    let devices: Vec<_> = job.filesystem.devices().keys().filter_map(|id| read(job, *id)).collect();
    for Copies { device, newest, defects } in &devices {
        let is_mounted = devices.iter().any(|it| it.newest.fsid == newest.fsid && it.has_first());
        let is_defect = |it: &&SuperblockDefect| !is_mounted || !is_of_previous(it);
        let defects: Vec<_> = defects.iter().map(|it| it.as_ref().filter(is_defect)).collect();
        add(&job.counters.superblocks, defects.len() as u64);
        add(&job.counters.checksums, defects.len() as u64);
        let good = || (1..).zip(&defects).filter(|(_, it)| it.is_none()).map(|(number, _)| number);
        for ((number, defect), offset) in (0..).zip(&defects).zip(OFFSETS) {
            let Some(defect) = *defect else { continue };
            job.report(Finding {
                place: Some(Place { mirror: number + 1, device: *device, physical: offset }),
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

/// The superblocks of a device.
struct Copies<'a> {
    device: u64,
    /// The newest superblock of the file system, or of the seed that the device belongs to.
    newest: &'a Superblock,
    /// Defects by copy.
    defects: Vec<Option<SuperblockDefect>>,
}

impl Copies<'_> {
    /// Returns whether the first copy is good.
    fn has_first(&self) -> bool {
        self.defects.first().is_some_and(Option::is_none)
    }
}

/// Reads the superblocks of a device. Reports if it is too short.
fn read<'a>(job: &Job<'a>, device: u64) -> Option<Copies<'a>> {
    let filesystem = job.filesystem;
    let copies = filesystem.superblock_copies(device)?;
    let stated = filesystem.device_items().get(&device).map(|item| item.total_bytes);
    let size = stated.filter(|size| *size >= OFFSETS[0] + SIZE as u64);
    let found = filesystem.devices()[&device].source.size();
    if let Some(size) = size.filter(|size| *size > found) {
        report_short(job, device, size, found);
    }
    // Copies on a seed are compared with the seed's own superblock.
    let newest = filesystem.superblock_of(device).unwrap_or(filesystem.superblock());
    let own = filesystem.own_superblock(device).unwrap_or(newest);
    let defects = OFFSETS
        .iter()
        .zip(&copies)
        // If a device shrank, data after its end is no longer a copy.
        .filter(|(offset, _)| size.is_none_or(|size| *offset + SIZE as u64 <= size))
        .filter_map(|(_, copy)| copy.as_ref())
        .map(|copy| match copy {
            Ok(superblock) => compare(superblock, own, newest),
            Err(defect) => Some(defect.clone()),
        })
        .collect();
    Some(Copies { device, newest, defects })
}

fn report_short(job: &Job<'_>, device: u64, expected: u64, found: u64) {
    job.report(Finding {
        place: Some(Place { mirror: 1, device, physical: found }),
        mirrors: 1,
        ..Finding::new(Subject::Device, Problem::Short { found }, expected)
    });
}

/// Returns whether a copy is one transaction older than the newest one. If the newest one is the
/// first of a device, that is the state after a crash, or at an instant, between the writes of a
/// commit. A mount reads the first superblocks of all devices and uses the newest of them. If none
/// of them is of the last transaction, a mount loses it.
fn is_of_previous(defect: &SuperblockDefect) -> bool {
    matches!(defect, SuperblockDefect::Generation { expected, found } if found.checked_add(1) == Some(*expected))
}

/// Returns the defect of an intact superblock relative to the newest one on the device, and to the
/// newest one of all, if any.
fn compare(
    superblock: &Superblock,
    own: &Superblock,
    newest: &Superblock,
) -> Option<SuperblockDefect> {
    if superblock.fsid != newest.fsid {
        return Some(SuperblockDefect::Fsid(superblock.fsid));
    }
    if let Some(offset) = superblock.difference_of_identity(own) {
        return Some(SuperblockDefect::Differs { offset });
    }
    let (expected, found) = (newest.generation, superblock.generation);
    if expected != found {
        return Some(SuperblockDefect::Generation { expected, found });
    }
    superblock.difference(newest).map(|offset| SuperblockDefect::Differs { offset })
}
