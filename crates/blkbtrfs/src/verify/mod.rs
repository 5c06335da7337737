//! Verifies that every block holds what was written, and finds the owners of those that do not.
//!
//! 1. [`superblocks`] compares every copy on every device.
//! 2. [`walk`] goes through all trees from the superblock, visits each block once even if it is shared,
//!    compares every reference with its block ([`known`]), and hands out leaves in batches.
//! 3. Each thread takes the next batch, reads all mirrors of its blocks and sums many at a time
//!    ([`metadata`]). Leaves of the checksum tree and of log trees refer to data. The same thread reads
//!    the data in large pieces in the order of the device, and compares it ([`data`]).
//! 4. Every leaf is checked against the rules ([`crate::rules`]), and its items are compared with items of
//!    other leaves ([`tally`]). File trees come last, when all checksums are known. [`examine`] performs
//!    these steps for a leaf.
//! 5. If blocks were lost, those below them are found through the extent tree ([`unreached`]).
//! 6. Data without checksums is read ([`unchecked`]), and the parities of RAID5 and RAID6 are compared
//!    ([`parity`]).
//!
//! All steps report through one [`job`]. Adjacent findings with one cause are joined
//! ([`adjacent`]).

mod adjacent;
mod data;
mod examine;
mod finding;
mod job;
mod known;
mod leaf;
mod metadata;
mod options;
mod parity;
mod summary;
mod superblocks;
mod tally;
mod unchecked;
mod unreached;
mod walk;

use std::sync::Mutex;
use std::thread;

pub use self::finding::{Category, Finding, Place, Problem, Subject};
pub use self::options::{Options, Watch};
pub use self::summary::{Summary, Verified};

use self::examine::{Buffers, Examiner};
use self::job::Job;
use self::parity::Rows;
use self::summary::add;
use self::unchecked::Pieces;
use self::walk::Walker;
use crate::error::Result;
use crate::filesystem::FileSystem;
use crate::tree::{BlockDefect, Parent, TreeRoot, object};

/// Verifies the file system, and passes each finding to `observer`, from any thread, once no other
/// finding joins it any more.
///
/// # Errors
///
/// Fails if `watch` cancels it, if an image changed while it was read, or if its server is gone.
/// Defects of the file system are findings.
pub fn verify(
    filesystem: &FileSystem,
    options: &Options,
    watch: &Watch<'_>,
    observer: &(dyn Fn(&Finding) + Sync),
) -> Result<Summary> {
    let job = Job::new(filesystem, options, watch, observer);
    superblocks::verify(&job);
    let examiner = Examiner::new(&job);
    let walker = Mutex::new(Walker::new(filesystem));
    on_threads(options.threads, || work(&examiner, &walker));
    job.check_cancelled()?;
    report_missing_trees(&job);
    examiner.tally.space().is_coverage_known = !job.has_lost_blocks();
    let trees = walker.lock().expect("no thread panicked").begin_files();
    on_threads(options.threads, || work(&examiner, &walker));
    job.check_cancelled()?;
    let walker = walker.into_inner().expect("no thread panicked");
    let compared = compare_trees(&examiner, &walker, &trees);
    if job.has_lost_blocks() {
        unreached::verify(&examiner, &walker);
    }
    verify_unchecked(&examiner, options.threads);
    if job.has_parity {
        let rows = Mutex::new(Rows::new(filesystem));
        on_threads(options.threads, || parity::verify(&job, &rows));
    }
    job.check_cancelled()?;
    if let Some(error) = filesystem.down() {
        return Err(error);
    }
    for device in filesystem.devices().values() {
        device.source.check_unchanged()?;
    }
    job.flush();
    let mut summary = job.counters.summary(filesystem);
    summary.compared = compared;
    if !job.has_lost_blocks() {
        summary.used = Some(examiner.tally.space().used());
    }
    Ok(summary)
}

/// Runs `work` on all threads, including this one.
fn on_threads(threads: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 1..threads.clamp(1, MAX_THREADS) {
            // If the thread does not start, the others do its work.
            let _ = thread::Builder::new().name("blkbtrfs".to_owned()).spawn_scoped(scope, &work);
        }
        work();
    });
}

/// Verifies batches of leaves until none are left.
fn work(examiner: &Examiner<'_>, walker: &Mutex<Walker<'_>>) {
    let mut buffers = Buffers::default();
    let (mut batch, mut outcomes) = (Vec::new(), Vec::new());
    while !examiner.job.is_cancelled()
        && walker.lock().expect("no thread panicked").next(examiner, &mut batch, &outcomes)
    {
        outcomes = examiner.verify(&batch, &mut buffers);
    }
}

/// Compares trees with each other, unless blocks are lost or invalid. Returns whether they were
/// compared.
fn compare_trees(examiner: &Examiner<'_>, walker: &Walker<'_>, trees: &[(u64, TreeRoot)]) -> bool {
    let Examiner { job, tally, .. } = examiner;
    if job.has_lost_blocks() || !job.are_trees_sound() {
        return false;
    }
    let is_whole = walker.is_whole();
    let unreached = match is_whole && !tally.has_other_references() {
        true => 0,
        false => unreached::report(job, walker),
    };
    for range in tally.space().uncovered_in_logs().iter() {
        job.report_uncovered(range.clone());
    }
    tally.compare(job, trees, is_whole && unreached == 0);
    true
}

/// Reads data without checksums in files that do not require them.
fn verify_unchecked(examiner: &Examiner<'_>, threads: usize) {
    let ranges = examiner.tally.space().unchecked();
    if !ranges.is_empty() {
        let pieces = Mutex::new(Pieces::new(ranges));
        on_threads(threads, || unchecked::verify(examiner.job, &pieces));
    }
}

/// Reports required trees that are missing.
fn report_missing_trees(job: &Job<'_>) {
    let superblock = job.filesystem.superblock();
    let optional = [
        (superblock.has_free_space_tree(), object::FREE_SPACE_TREE),
        (superblock.has_block_group_tree(), object::BLOCK_GROUP_TREE),
    ];
    let optional = optional.into_iter().filter(|(is_there, _)| *is_there);
    for tree in object::ALWAYS.into_iter().chain(optional.map(|(_, tree)| tree)) {
        if let Ok(None) = job.filesystem.tree_root(tree) {
            add(&job.counters.lost_blocks, 1);
            let reason = format!("the root tree has no {}", object::tree_name(tree));
            let (logical, length) = (superblock.root.logical, job.filesystem.node_size());
            let defect = BlockDefect::Structure(reason);
            let place = (object::ROOT_TREE, superblock.root.level);
            let finding = Finding::of_tree_block(place, Some(logical), length, defect);
            job.report(Finding { parent: Some(Parent::Superblock), ..finding });
        }
    }
}

/// More threads would only cost memory.
const MAX_THREADS: usize = 1024;
