//! Layers that are recognised last: file systems, what is known by name only, and unknown bytes.

use blkfs::volumes::luks::Luks;
use blkfs::{Backup, FileSystem, signature};
use blkimage::partition::Kind;

use super::{erofs, file_system, luks, named};
use crate::error::Result;
use crate::finding::{Finding, FindingKind};
use crate::found::Layer;
use crate::report::Row;
use crate::tally::{Job, Tally, of_bytes};

/// A layer that is not read.
pub(crate) fn skipped(
    job: &mut Job<'_>,
    layer: &Layer,
    kind: &'static str,
    finding: &Finding,
) -> Row {
    let mut tally = job.tally(layer, kind);
    tally.finding(finding.clone());
    tally.finish()
}

/// Verifies a file system, or tells the name of what is there.
pub(crate) fn verify(job: &mut Job<'_>, layer: &Layer) -> Result<Row> {
    let window = &layer.window;
    match FileSystem::open(window.source.clone()) {
        Ok(Some(file_system)) => return file_system::verify(job, layer, &file_system),
        Ok(None) => {}
        Err(error) => return unopened(job, layer, error),
    }
    let name = match signature(&*window.source) {
        Ok(name) => name,
        Err(error) => return unopened(job, layer, error.into()),
    };
    if let Some(name) = name {
        return of_name(job, layer, name);
    }
    match Luks::open_secondary(&window.source) {
        Ok(Some(headers)) => return Ok(luks::verify(job, layer, &headers)),
        Ok(None) => {}
        Err(error) => return unopened(job, layer, error),
    }
    if let Some(backup) = Backup::find(&window.source) {
        return Ok(destroyed(job, layer, &backup));
    }
    let mut tally = job.tally(layer, "unknown");
    if layer.missing > 0 {
        tally.finding(layer.cut_off());
    }
    let reason = match &layer.details {
        Some(details) => expected(details.kind)
            .map(|it| format!("the type of the partition is {it}, which is not there")),
        None => Some("nothing is recognised".to_owned()),
    };
    if let Some(reason) = reason {
        missing_signature(&mut tally, &reason)?;
    }
    Ok(tally.finish())
}

/// A file system that cannot be opened.
fn unopened(job: &mut Job<'_>, layer: &Layer, error: blkfs::Error) -> Result<Row> {
    let mut tally = job.tally(layer, "unknown");
    let finding = match error {
        blkfs::Error::Image(error) => of_bytes(error)?,
        blkfs::Error::Damaged { reason, offset } => {
            Finding::new(FindingKind::Damaged, "file system", offset, reason)
        }
        error => Finding::new(FindingKind::Skipped, "file system", 0, error.to_string()),
    };
    tally.finding(finding);
    Ok(tally.finish())
}

/// A file system of which a backup of the superblock is left.
fn destroyed(job: &mut Job<'_>, layer: &Layer, backup: &Backup) -> Row {
    let Backup { kind, primary, offset, block_size, .. } = *backup;
    let mut tally = job.tally(layer, kind.name());
    let block = offset / block_size;
    let reason = format!(
        "the primary superblock is destroyed; a backup at {offset} is valid, in block {block} of {block_size} bytes"
    );
    tally.finding(Finding::new(FindingKind::Damaged, "superblock", primary, reason));
    tally.finish()
}

/// A kind of which only the name is known.
fn of_name(job: &mut Job<'_>, layer: &Layer, name: &'static str) -> Result<Row> {
    let mut tally = job.tally(layer, name);
    let size = layer.window.size();
    match name {
        "erofs" => erofs::verify(&mut tally)?,
        name if named::has_checksums(name) => {
            let reason = "its checksums are not read";
            tally.finding(Finding::new(FindingKind::Skipped, "file system", 0, reason));
        }
        _ => tally.row.unprotected = Some(size),
    }
    if let Some(tree) = &layer.tree {
        tally.protect(tree);
    }
    if layer.missing > 0 {
        let (missing, size) = (layer.missing, layer.window.size());
        tally.remark(format!("the image ends after {size} bytes of it: {missing} are missing"));
    }
    Ok(tally.finish())
}

/// Reports a place without anything that is known, unless it was never written.
fn missing_signature(tally: &mut Tally<'_, '_>, reason: &str) -> Result<()> {
    match tally.window.head(64 << 10) {
        Ok(bytes) if bytes.iter().all(|byte| *byte == 0) => {}
        Ok(_) => tally.finding(Finding::new(FindingKind::Skipped, "first bytes", 0, reason)),
        Err(error) => tally.finding(of_bytes(error)?),
    }
    Ok(())
}

/// Returns what partitions of a type begin with, if that is something with checksums.
fn expected(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Mbr(0x8e) => return Some("LVM"),
        Kind::Gpt(guid) if guid.to_string() == LUKS => return Some("LUKS"),
        _ => {}
    }
    match kind.name()? {
        "Linux LVM" => Some("LVM"),
        name if name.contains("verity") => Some("dm-verity"),
        "Linux" | "Linux file system" | "Linux home" | "Linux variable data" => Some(OF_LINUX),
        name if name.starts_with("Linux root") || name.starts_with("Linux usr") => Some(OF_LINUX),
        "EFI system" | "FAT16" | "FAT32" => Some("FAT"),
        "Microsoft basic data" | "NTFS or exFAT" | "Windows recovery" => Some("NTFS, FAT or exFAT"),
        _ => None,
    }
}

const OF_LINUX: &str = "a file system of Linux";

/// Type of partitions with LUKS.
const LUKS: &str = "ca7d7ccb-63ed-4c53-861c-1742536059cc";
