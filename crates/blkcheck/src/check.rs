//! Verifies the layers of a disk one after the other.

use std::sync::Arc;

use blkimage::Source;

use crate::error::Result;
use crate::find;
use crate::found::{Found, Layer};
use crate::layers::{btrfs, gpt, luks, lvm, other, verity};
use crate::options::{Options, Watch};
use crate::pair;
use crate::report::{Report, Row};
use crate::sink::Sink;
use crate::tally::Job;
use crate::window::Window;

/// Verifies every checksum that a disk holds of itself, and passes what does not match to `sink`.
///
/// # Errors
///
/// Fails if `watch` cancels it, or if the image changed while it was read. What is damaged or cannot be read is a finding.
pub fn check(
    disk: &Arc<dyn Source>,
    options: &Options,
    watch: &Watch<'_>,
    sink: &mut dyn Sink,
) -> Result<Report> {
    let mut layers = find::layers(Window::disk(disk.clone()))?;
    pair::pair(&mut layers);
    let mut job = Job::new(options, watch, sink);
    let mut report = Report::default();
    for index in 0..layers.len() {
        report.rows.push(verify(&mut job, &layers, index)?);
    }
    disk.check_unchanged()?;
    Ok(report)
}

fn verify(job: &mut Job<'_>, layers: &[Layer], index: usize) -> Result<Row> {
    let layer = &layers[index];
    match &layer.found {
        Found::Gpt(table) => Ok(gpt::verify(job, layer, table)),
        Found::Mbr(lost) => Ok(gpt::of_mbr(job, layer, lost.as_deref())),
        Found::Luks(luks) => Ok(luks::verify(job, layer, luks)),
        Found::Lvm(volume) => Ok(lvm::verify(job, layer, volume)),
        Found::Verity(data) => verity::verify(job, layer, data.as_ref()),
        Found::Btrfs(group) => btrfs::verify(job, layers, layer, group.as_ref()),
        Found::BtrfsDevice(first) => Ok(btrfs::device(job, layer, first)),
        Found::Skipped(kind, finding) => Ok(other::skipped(job, layer, kind, finding)),
        Found::Other => other::verify(job, layer),
    }
}

#[cfg(test)]
mod tests;
