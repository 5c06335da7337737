//! btrfs, which also has checksums of its data.

use std::sync::{Mutex, PoisonError};

use blkbtrfs::{Category, Device, FileSystem, Group, Summary, Superblock};

use crate::error::{Error, Result};
use crate::finding::{Finding, FindingKind};
use crate::found::Layer;
use crate::place::Place;
use crate::report::Row;
use crate::tally::{Job, Tally, of_bytes};

/// Verifies a file system from its first device on this disk.
pub(crate) fn verify(
    job: &mut Job<'_>,
    layers: &[Layer],
    layer: &Layer,
    group: Option<&Group>,
) -> Result<Row> {
    let mut tally = job.tally(layer, "btrfs");
    let own =
        || vec![Device { name: layer.place.to_string(), source: layer.window.source.clone() }];
    let (devices, seeds) = match group {
        Some(group) => (group.devices.clone(), group.seeds.clone()),
        None => (own(), Vec::new()),
    };
    let count = devices.len() as u64;
    let file_system = match FileSystem::open_with(devices, seeds, None) {
        Ok(file_system) => file_system,
        Err(error) => {
            let mut finding = of_error(error)?;
            // Its trees may be on the others.
            let superblock = Superblock::read(&*layer.window.source, "");
            if superblock.is_ok_and(|it| it.device_count > count) {
                finding.kind = FindingKind::Unreadable;
            }
            tally.finding(finding);
            return Ok(tally.finish());
        }
    };
    let superblock = file_system.superblock();
    tally.row.uuid = Some(superblock.fsid.to_string());
    tally.row.label = Some(superblock.label.clone()).filter(|label| !label.is_empty());
    let options = blkbtrfs::Options::default()
        .with_threads(tally.options().threads)
        .with_max_owners(tally.options().max_paths)
        .with_max_findings(tally.left());
    let (progress, total) = (tally.progress(), file_system.verified_bytes());
    let watch = |bytes| progress(bytes, Some(total));
    let passed = Mutex::new(Counts::new());
    let shown = Mutex::new(&mut tally);
    let verified = blkbtrfs::verify(&file_system, &options, &watch, &|finding| {
        let found = of_finding(layers, &file_system, finding);
        // The summary counts all findings.
        let mut counts = passed.lock().unwrap_or_else(PoisonError::into_inner);
        let count = kind_count(&mut counts, found.kind);
        *count = count.saturating_add(found.count);
        drop(counts);
        shown.lock().unwrap_or_else(PoisonError::into_inner).finding_on_disk(&found);
    });
    let passed = passed.into_inner().unwrap_or_else(PoisonError::into_inner);
    match verified {
        Ok(summary) => add(&mut tally, &summary, passed),
        Err(blkbtrfs::Error::Cancelled) => return Err(Error::Cancelled),
        Err(error) => tally.finding(of_error(error)?),
    }
    if let Some(tree) = &layer.tree {
        tally.protect(tree);
    }
    Ok(tally.finish())
}

/// A device of a file system that is verified with another one.
pub(crate) fn device(job: &mut Job<'_>, layer: &Layer, first: &Place) -> Row {
    let mut tally = job.tally(layer, "btrfs");
    tally.remark(format!("a device of the file system whose first one is {first}"));
    tally.finish()
}

/// Adds what a check counted, of which `passed` findings of each kind were passed on.
fn add(tally: &mut Tally<'_, '_>, summary: &Summary, mut passed: Counts) {
    let verified = &summary.verified;
    for (structure, count, bytes) in [
        ("superblock", verified.superblocks, verified.superblocks.saturating_mul(4096)),
        ("tree block", verified.tree_blocks, verified.tree_bytes),
        (
            "data",
            verified.checksums.saturating_sub(verified.superblocks + verified.tree_blocks),
            verified.data_bytes,
        ),
    ] {
        if count > 0 {
            tally.matched(structure, count, bytes);
        }
    }
    let mut total = Counts::new();
    for &category in Category::ALL {
        let count = kind_count(&mut total, kind(category));
        *count = count.saturating_add(summary.count(category));
    }
    for (kind, count) in total {
        tally.count(kind, count.saturating_sub(*kind_count(&mut passed, kind)));
    }
    if !summary.is_complete() && (summary.missing_devices > 0 || summary.missing_bytes > 0) {
        let reason = format!("{} of its devices are missing", summary.missing_devices);
        tally.finding(Finding::new(FindingKind::Unreadable, "device", 0, reason));
    }
    tally.row.unprotected = summary.used.map(|used| used.unprotected.total());
}

/// Numbers of findings of each kind that there is.
type Counts = Vec<(FindingKind, u64)>;

fn kind_count(counts: &mut Counts, kind: FindingKind) -> &mut u64 {
    let index = counts.iter().position(|it| it.0 == kind).unwrap_or(counts.len());
    if index == counts.len() {
        counts.push((kind, 0));
    }
    &mut counts[index].1
}

fn kind(category: Category) -> FindingKind {
    match category {
        Category::Superblock | Category::TreeChecksum | Category::DataChecksum => {
            FindingKind::Mismatch
        }
        Category::Read => FindingKind::Unreadable,
        _ => FindingKind::Damaged,
    }
}

fn of_finding(layers: &[Layer], file_system: &FileSystem, finding: &blkbtrfs::Finding) -> Finding {
    let kind = kind(finding.category());
    let place = finding.place.as_ref();
    let offset = place.map_or(0, |place| place.physical);
    let device = place.and_then(|place| file_system.devices().get(&place.device));
    let layer = device
        .and_then(|device| layers.iter().find(|layer| layer.place.to_string() == device.name));
    let reason = finding.problem.to_string();
    Finding {
        length: finding.length,
        count: finding.blocks,
        disk_offset: layer.map_or(offset, |layer| layer.window.on_disk(offset)),
        paths: finding.owners.paths().map(<[u8]>::to_vec).collect(),
        ..Finding::new(kind, finding.subject.name(), offset, reason)
    }
}

fn of_error(error: blkbtrfs::Error) -> Result<Finding> {
    let kind = match error {
        blkbtrfs::Error::Image(error) => return of_bytes(error),
        blkbtrfs::Error::Unsupported(_) => FindingKind::Skipped,
        blkbtrfs::Error::Devices(_) => FindingKind::Unreadable,
        _ => FindingKind::Damaged,
    };
    Ok(Finding::new(kind, "file system", 0, error.to_string()))
}
