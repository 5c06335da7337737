//! Is every block what was written, and what does it belong to if not?
//!
//! 1. [`superblocks`] looks at every copy on every device.
//! 2. [`walk`] goes through all trees from the superblock on, visits each block once however often
//!    it is shared, holds every reference against the block that it leads to ([`known`]), and hands
//!    out leaves in batches.
//! 3. Every thread takes the next batch, reads all mirrors of its blocks and sums them many at a time
//!    ([`metadata`]). Leaves of the checksum tree and of log trees name data: the same thread reads
//!    it in large pieces, in the order of the device, and compares ([`data`]).
//! 4. Every leaf is held against the rules ([`crate::rules`]), and what it says against what others
//!    say of the same things ([`tally`]). Trees of files come last: by then it is known what has
//!    checksums. All that is done with one leaf is in [`examine`].
//! 5. If blocks were lost, those below them are found through the extent tree ([`unreached`]).
//! 6. Data without checksums is read ([`unchecked`]), and the parities of RAID5 and RAID6 are compared
//!    ([`parity`]).
//!
//! All of them report through one [`job`]. Findings side by side with one cause are joined ([`adjacent`]).

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
mod progress;
mod summary;
mod superblocks;
mod tally;
mod unchecked;
mod unreached;
mod walk;

use std::sync::Mutex;
use std::thread;

pub use self::finding::{Category, Finding, Place, Problem, Subject};
pub use self::options::Options;
pub use self::progress::Progress;
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

/// Verifies everything, and hands each finding to `observer`, from any thread: when no other joins
/// it any more.
///
/// # Errors
///
/// An image changed while it was read, or its server is gone. What is wrong with the file system is
/// a finding.
pub fn verify(
    filesystem: &FileSystem,
    options: &Options,
    progress: &Progress,
    observer: &(dyn Fn(&Finding) + Sync),
) -> Result<Summary> {
    let job = Job::new(filesystem, options, progress, observer);
    superblocks::verify(&job);
    let examiner = Examiner::new(&job);
    let walker = Mutex::new(Walker::new(filesystem));
    on_threads(options.threads, || work(&examiner, &walker));
    report_missing_trees(&job);
    examiner.tally.space().is_coverage_known = !job.has_lost_blocks();
    let trees = walker.lock().expect("no thread panicked").begin_files();
    on_threads(options.threads, || work(&examiner, &walker));
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

/// Does some work on all threads, of which this is one.
fn on_threads(threads: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 1..threads.clamp(1, MAX_THREADS) {
            // Without it the others do its work.
            let _ = thread::Builder::new().name("blkbtrfs".to_owned()).spawn_scoped(scope, &work);
        }
        work();
    });
}

/// Works until there is nothing left.
fn work(examiner: &Examiner<'_>, walker: &Mutex<Walker<'_>>) {
    let mut buffers = Buffers::default();
    let (mut batch, mut outcomes) = (Vec::new(), Vec::new());
    while walker.lock().expect("no thread panicked").next(examiner, &mut batch, &outcomes) {
        outcomes = examiner.verify(&batch, &mut buffers);
    }
}

/// Compares trees with each other, if all of them are there and make sense; returns whether that
/// is so.
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

/// Reads data without checksums, of files that promise none.
fn verify_unchecked(examiner: &Examiner<'_>, threads: usize) {
    let ranges = examiner.tally.space().unchecked();
    if !ranges.is_empty() {
        let pieces = Mutex::new(Pieces::new(ranges));
        on_threads(threads, || unchecked::verify(examiner.job, &pieces));
    }
}

/// Reports trees that there must be and are not.
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

/// More threads than that cost memory only.
const MAX_THREADS: usize = 1024;
