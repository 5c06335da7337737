//! The metadata of a physical volume.

use blkfs::volumes::lvm::PhysicalVolume;

use crate::found::Layer;
use crate::report::Row;
use crate::tally::Job;

pub(crate) fn verify(job: &mut Job<'_>, layer: &Layer, volume: &PhysicalVolume) -> Row {
    let mut tally = job.tally(layer, "LVM2");
    tally.row.uuid = Some(volume.uuid.clone());
    tally.row.label = volume.group.as_ref().map(|name| name.clone().into_bytes());
    tally.checks(&volume.checks);
    tally.finish()
}
