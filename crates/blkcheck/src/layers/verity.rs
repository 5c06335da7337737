//! Hash trees of dm-verity in a part of their own.
//!
//! The root hash is not in the superblock. If it is nowhere else in the image, the one of the stored tree is used: then
//! a change of the data or of the tree is found, but not one of both.

use std::sync::{Arc, Mutex, PoisonError};

use blkhash::Digest;
use blkimage::{Extent, Source};
use blkverity::{Finding as Hit, Problem, StoredTree, Summary, Verifier};

use crate::error::{Error, Result};
use crate::finding::{Finding, FindingKind};
use crate::found::{Data, Layer};
use crate::pair;
use crate::report::Row;
use crate::tally::{Job, Tally, of_bytes};
use crate::window::Window;

pub(crate) fn verify(job: &mut Job<'_>, layer: &Layer, data: Option<&Data>) -> Result<Row> {
    let mut tally = job.tally(layer, "dm-verity");
    let window = &layer.window;
    let stored = match StoredTree::open(&*window.source, 0) {
        Ok(stored) => stored,
        Err(error) => {
            tally.finding(of_error(error)?);
            return Ok(tally.finish());
        }
    };
    if let Some((superblock, _)) = stored.superblock() {
        tally.row.uuid = Some(uuid(&superblock.uuid));
    }
    tally.row.unprotected = Some(0);
    let Some(data) = data else {
        let reason =
            "its data is not on this disk, was changed all over, or there are too many trees";
        tally.finding(Finding::new(FindingKind::Skipped, "hash tree", 0, reason));
        return Ok(tally.finish());
    };
    let place = &data.place;
    tally.remark(match &data.root {
        Some(root) => format!("the tree of {place}, its root hash is in {}", root.source),
        None => format!(
            "the tree of {place}, without its root hash: a change of both would not be found"
        ),
    });
    let root = data.root.as_ref().map(|root| root.digest.clone());
    let root = root.or_else(|| pair::top(window, &stored));
    let root = root.and_then(|root| Digest::try_from(root.as_slice()).ok());
    let Some(root) = root else {
        let reason = "its root hash is not in the image";
        tally.finding(Finding::new(FindingKind::Skipped, "hash tree", 0, reason));
        return Ok(tally.finish());
    };
    match run(&mut tally, &stored, data, &root) {
        Ok(summary) => {
            let bad = summary.bad_data.saturating_add(summary.unverified);
            let good = summary.data_blocks.saturating_sub(bad);
            let block_size = stored.parameters().block_size();
            tally.matched("data block", good, good.saturating_mul(block_size.into()));
            let blocks = stored.layout().blocks().saturating_sub(summary.bad_tree);
            tally.matched("hash block", blocks, blocks.saturating_mul(stored.block_size().into()));
        }
        Err(blksum::Error::Verity(error)) => tally.finding(of_error(error)?),
        Err(blksum::Error::Image(error)) => tally.finding(of_bytes(error)?),
        Err(blksum::Error::Cancelled) => return Err(Error::Cancelled),
        Err(error) => {
            let reason = error.to_string();
            tally.finding(Finding::new(FindingKind::Skipped, "hash tree", 0, reason));
        }
    }
    Ok(tally.finish())
}

fn run(
    tally: &mut Tally<'_, '_>,
    stored: &StoredTree,
    data: &Data,
    root: &Digest,
) -> std::result::Result<Summary, blksum::Error> {
    let file = tally.window.source.clone();
    let watch = tally.progress();
    let tuning = blksum::Tuning::default().with_threads(tally.options().threads);
    let progress = blksum::Progress::new();
    let total = Some(stored.data_length());
    let watched = Watched {
        source: data.window.source.clone(),
        progress: &progress,
        watch: &|bytes| watch(bytes, total).is_continue(),
    };
    let tally = Mutex::new(tally);
    let mut report = |hit: &Hit| {
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        let finding = of_hit(hit, &data.window, tally.window);
        tally.finding_on_disk(&finding);
    };
    let verifier = Verifier::new(&*file, stored, root, &mut report)?;
    let verified = blksum::verity::verify(&watched, verifier, &tuning, &progress);
    if progress.is_cancelled() {
        return Err(blksum::Error::Cancelled);
    }
    verified.map(|(summary, _)| summary)
}

/// Returns the finding for blocks of the data or of the tree.
fn of_hit(hit: &Hit, data: &Window, tree: &Window) -> Finding {
    let count = hit.count;
    let (kind, structure, window, reason) = match hit.problem {
        Problem::Data => (FindingKind::Mismatch, "data block", data, "not the digest in the tree"),
        Problem::Unreadable => (FindingKind::Unreadable, "data block", data, "unreadable"),
        Problem::Unverified => (
            FindingKind::Damaged,
            "data block",
            data,
            "the tree above is damaged, and the data is not what it was",
        ),
        Problem::Tree(_) => (FindingKind::Mismatch, "hash block", tree, "not the digest above"),
        Problem::Spare(_) => {
            (FindingKind::Damaged, "hash block", tree, "nonzero bytes next to the digests")
        }
        _ => (FindingKind::Damaged, "hash tree", tree, "damaged"),
    };
    let finding = Finding::new(kind, structure, hit.offset, format!("{count} blocks: {reason}"));
    Finding { length: hit.length, disk_offset: window.on_disk(hit.offset), ..finding }
}

fn of_error(error: blkverity::Error) -> Result<Finding> {
    let kind = match error {
        blkverity::Error::Stored(error) => return of_bytes(error),
        blkverity::Error::CutOff { .. } | blkverity::Error::Short { .. } => FindingKind::Unreadable,
        _ => FindingKind::Damaged,
    };
    Ok(Finding::new(kind, "superblock", 0, error.to_string()))
}

fn uuid(bytes: &[u8; 16]) -> String {
    let hex = data_encoding::HEXLOWER.encode(bytes);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// A source that tells of each read, and cancels the pass if that is asked for.
struct Watched<'a> {
    source: Arc<dyn Source>,
    progress: &'a blksum::Progress,
    watch: &'a (dyn Fn(u64) -> bool + Sync),
}

impl Source for Watched<'_> {
    fn size(&self) -> u64 {
        self.source.size()
    }

    fn extent(&self, offset: u64, limit: u64) -> blkimage::Result<Extent> {
        let extent = self.source.extent(offset, limit)?;
        if extent.kind == blkimage::ExtentKind::Zero && !(self.watch)(extent.length) {
            self.progress.cancel();
        }
        Ok(extent)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> blkimage::Result<()> {
        self.source.read_exact_at(buf, offset)?;
        if !(self.watch)(buf.len() as u64) {
            self.progress.cancel();
        }
        Ok(())
    }

    fn granularity(&self) -> u64 {
        self.source.granularity()
    }

    fn queue_depth(&self) -> usize {
        self.source.queue_depth()
    }

    fn will_need(&self, offset: u64, length: u64) {
        self.source.will_need(offset, length);
    }

    fn read_ahead(&self) -> u64 {
        self.source.read_ahead()
    }

    fn check_unchanged(&self) -> blkimage::Result<()> {
        self.source.check_unchanged()
    }
}
