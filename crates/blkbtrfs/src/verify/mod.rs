//! Is every block what was written, and what does it belong to if not?
//!
//! 1. [`superblocks`] looks at every copy on every device.
//! 2. [`walk`] goes through all trees from the superblock on, visits each block once however often
//!    it is shared, holds every reference against the block that it leads to ([`known`]), and hands
//!    out leaves in batches.
//! 3. Every thread takes the next batch, reads all mirrors of its blocks and sums them many at a time
//!    ([`metadata`]). Leaves of the checksum tree and of log trees name data: the same thread reads
//!    it in large pieces, in the order of the device, and compares ([`data`]).
//! 4. If blocks were lost, those below them are found through the extent tree ([`sweep`]).
//! 5. [`parity`] compares the parities of RAID5 and RAID6, and [`crate::unprotected`] counts what has
//!    no checksum.
//!
//! Findings side by side with one cause are joined ([`join`]).

mod data;
mod finding;
mod join;
mod known;
mod metadata;
mod parity;
mod progress;
mod superblocks;
mod sweep;
mod walk;

use std::collections::HashSet;
use std::hash::RandomState;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::backref::{Owners, Resolver};
use crate::error::{Error, Result};
use crate::filesystem::FileSystem;
use crate::tree::{BlockDefect, object};
use crate::unprotected::{self, Unprotected};

pub use finding::{Category, Finding, Place, Problem, Subject};
pub use progress::Progress;

use self::join::Joiner;
use self::known::Outcome;
use self::metadata::{BlockBuffer, Counting};
use self::parity::Rows;
use self::walk::Walker;

/// How to verify.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Threads that read and hash.
    pub threads: usize,
    /// Files that are named for one block at most.
    pub max_owners: usize,
    /// Findings that the observer is told of at most. All are counted.
    pub max_findings: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: thread::available_parallelism().map_or(1, NonZero::get),
            max_owners: 16,
            max_findings: None,
        }
    }
}

/// What was looked at and what was wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// What was read and compared.
    pub verified: Verified,
    /// Blocks that are wrong, by [`Category::ALL`].
    pub findings: [u64; Category::ALL.len()],
    /// Devices that are not there.
    pub missing_devices: usize,
    /// Bytes on missing devices that could not be looked at: mirrors of data and tree blocks that
    /// parity does not give, either.
    pub missing_bytes: u64,
    /// References to tree blocks that lead to no good one: it has no good mirror, or is another
    /// one.
    pub lost_blocks: u64,
    /// What no checksum protects; `None` if the trees that tell are damaged, which is a finding, or
    /// on missing devices.
    pub unprotected: Option<Unprotected>,
}

/// What was read and compared, every mirror of it counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Superblocks.
    pub superblocks: u64,
    /// Tree blocks.
    pub tree_blocks: u64,
    /// Bytes of tree blocks.
    pub tree_bytes: u64,
    /// Bytes of data.
    pub data_bytes: u64,
    /// Checksums, those in the heads of tree blocks and superblocks included.
    pub checksums: u64,
    /// Bytes of these, of data and tree blocks, that are on missing devices: computed from parity.
    pub rebuilt_bytes: u64,
    /// Bytes of data in rows whose parity was computed.
    pub parity_bytes: u64,
}

impl Summary {
    /// Whether nothing wrong was found.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|count| *count == 0)
    }

    /// Whether everything was there to be looked at.
    pub fn is_complete(&self) -> bool {
        self.lacks_nothing() && self.unprotected.is_some()
    }

    /// Whether all devices, and all tree blocks that something leads to, are there.
    fn lacks_nothing(&self) -> bool {
        self.missing_devices == 0 && self.missing_bytes == 0 && self.lost_blocks == 0
    }

    /// Blocks of one category that are wrong.
    pub fn count(&self, category: Category) -> u64 {
        self.findings[category as usize]
    }
}

/// Verifies everything, and hands each finding to `observer`, from any thread: when no other joins
/// it any more.
///
/// # Errors
///
/// An image changed while it was read. What is wrong with the file system is a finding.
pub fn verify(
    filesystem: &FileSystem,
    options: &Options,
    progress: &Progress,
    observer: &(dyn Fn(&Finding) + Sync),
) -> Result<Summary> {
    let job = Job {
        filesystem,
        progress,
        observer,
        joiner: Mutex::new(Joiner::new(options.max_owners)),
        left: AtomicU64::new(options.max_findings.unwrap_or(u64::MAX)),
        resolver: Resolver::new(filesystem, options.max_owners),
        counters: Counters::default(),
        has_parity: filesystem.chunks().iter().any(|chunk| chunk.profile.parities() > 0),
        known_bad: Mutex::default(),
    };
    superblocks::verify(&job);
    let hasher = RandomState::new();
    let walker = Mutex::new(Walker::new(filesystem, &hasher));
    let (unprotected, is_counted) = (Mutex::new(None), AtomicBool::new(false));
    on_threads(options.threads, || {
        // One thread counts while the others begin.
        if !is_counted.swap(true, Ordering::Relaxed) {
            *unprotected.lock().expect("no thread panicked") =
                Some(unprotected::count(filesystem, &hasher));
        }
        job.work(&walker);
    });
    let walker = walker.into_inner().expect("no thread panicked");
    let counted = unprotected.into_inner().expect("no thread panicked");
    let so_far = job.counters.summary(filesystem, None);
    if let Some(Ok((_, listed))) = &counted
        && so_far.is_clean()
        && so_far.lacks_nothing()
    {
        match walker.references() {
            Some(followed) if followed == *listed => {}
            Some(_) => sweep::report_differing(&job, &walker),
            None => sweep::report_unreached(&job, &walker),
        }
    }
    if job.counters.lost_blocks.load(Ordering::Relaxed) > 0 {
        sweep::verify(&job, &walker);
    }
    if job.has_parity {
        let rows = Mutex::new(Rows::new(filesystem));
        on_threads(options.threads, || parity::verify(&job, &rows));
    }
    for device in filesystem.devices().values() {
        device.source.check_unchanged()?;
    }
    let mut summary = job.counters.summary(filesystem, None);
    match counted {
        Some(Ok((count, _))) => summary.unprotected = Some(count),
        // Where something is missing or wrong already, that is why.
        Some(Err(error)) if summary.is_clean() && summary.lacks_nothing() => {
            job.report_unreadable(&error);
            summary = job.counters.summary(filesystem, None);
        }
        Some(Err(_)) | None => {}
    }
    job.flush();
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

/// What the threads share.
struct Job<'a> {
    filesystem: &'a FileSystem,
    progress: &'a Progress,
    observer: &'a (dyn Fn(&Finding) + Sync),
    joiner: Mutex<Joiner>,
    /// Findings that the observer may still be told of.
    left: AtomicU64,
    resolver: Resolver<'a>,
    counters: Counters,
    has_parity: bool,
    /// Sectors that findings are about, by device and address: kept where there are parities.
    known_bad: Mutex<HashSet<(u64, u64)>>,
}

impl Job<'_> {
    /// Works until there is nothing left.
    fn work(&self, walker: &Mutex<Walker<'_>>) {
        let mut buffers = Buffers::default();
        let (mut batch, mut outcomes) = (Vec::new(), Vec::new());
        while walker.lock().expect("no thread panicked").next(self, &mut batch, &outcomes) {
            outcomes = self.verify_leaves(&batch, &mut buffers);
        }
    }

    /// Verifies leaves, and the data that they have checksums of.
    fn verify_leaves(
        &self,
        batch: &[crate::tree::Expected],
        buffers: &mut Buffers,
    ) -> Vec<Outcome> {
        let Buffers { blocks, data } = buffers;
        let mut outcomes = Vec::with_capacity(batch.len());
        for (outcome, leaf) in self.verify_blocks(batch, blocks, Counting::Yes) {
            outcomes.push(outcome);
            if let Some(leaf) = leaf.filter(|leaf| data::may_have_checksums(leaf.owner())) {
                self.verify_data(&leaf, data);
            }
        }
        outcomes
    }

    /// Whether a finding was about a sector. With too many of them, all count as known.
    fn is_known_bad(&self, device: u64, physical: u64) -> bool {
        let known = self.known_bad.lock().expect("no thread panicked");
        known.len() == MAX_KNOWN_BAD || known.contains(&(device, physical))
    }

    /// What a block belongs to, if the observer is to be told.
    fn owners(&self, find: impl FnOnce(&Resolver<'_>) -> Owners) -> Owners {
        match self.left.load(Ordering::Relaxed) {
            0 => Owners { is_partial: true, ..Owners::default() },
            _ => find(&self.resolver),
        }
    }

    /// Reports why what has no checksums could not be counted, though each block is good.
    fn report_unreadable(&self, error: &Error) {
        let (reason, logical) = match error {
            Error::Corrupt { reason, logical } => (reason.clone(), Some(*logical)),
            error => (error.to_string(), None),
        };
        let length = self.filesystem.node_size();
        let defect = BlockDefect::Structure(reason);
        self.report(Finding::of_tree_block((object::EXTENT_TREE, 0), logical, length, defect));
    }

    fn report(&self, finding: Finding) {
        if let Some(place) = finding.place.filter(|_| self.has_parity) {
            let sector = self.filesystem.sector_size() as u64;
            let mut known = self.known_bad.lock().expect("no thread panicked");
            for offset in (0..finding.length.min(MAX_BLOCK)).step_by(sector as usize) {
                if known.len() < MAX_KNOWN_BAD {
                    known.insert((place.device, place.physical + offset));
                }
            }
        }
        let category = finding.category();
        self.counters.findings[category as usize].fetch_add(1, Ordering::Relaxed);
        let ready = self.joiner.lock().expect("no thread panicked").add(finding);
        ready.iter().for_each(|finding| self.hand_over(finding));
    }

    /// Hands over the findings that were held back.
    fn flush(&self) {
        let rest = self.joiner.lock().expect("no thread panicked").take();
        rest.iter().for_each(|finding| self.hand_over(finding));
    }

    fn hand_over(&self, finding: &Finding) {
        let less = |left: u64| left.checked_sub(1);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            (self.observer)(finding);
        }
    }
}

/// What a thread reads into.
#[derive(Default)]
struct Buffers {
    blocks: BlockBuffer,
    data: data::Memory,
}

#[derive(Default)]
struct Counters {
    superblocks: AtomicU64,
    tree_blocks: AtomicU64,
    tree_bytes: AtomicU64,
    data_bytes: AtomicU64,
    checksums: AtomicU64,
    rebuilt_bytes: AtomicU64,
    parity_bytes: AtomicU64,
    findings: [AtomicU64; Category::ALL.len()],
    missing_bytes: AtomicU64,
    lost_blocks: AtomicU64,
}

impl Counters {
    fn summary(&self, filesystem: &FileSystem, unprotected: Option<Unprotected>) -> Summary {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Summary {
            verified: Verified {
                superblocks: value(&self.superblocks),
                tree_blocks: value(&self.tree_blocks),
                tree_bytes: value(&self.tree_bytes),
                data_bytes: value(&self.data_bytes),
                checksums: value(&self.checksums),
                rebuilt_bytes: value(&self.rebuilt_bytes),
                parity_bytes: value(&self.parity_bytes),
            },
            findings: self.findings.each_ref().map(value),
            missing_devices: filesystem.missing_devices().len(),
            missing_bytes: value(&self.missing_bytes),
            lost_blocks: value(&self.lost_blocks),
            unprotected,
        }
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// The largest tree block.
const MAX_BLOCK: u64 = 64 << 10;

/// Sectors that are kept: a few MiB of memory.
const MAX_KNOWN_BAD: usize = 64 << 10;

/// More threads than that cost memory only.
const MAX_THREADS: usize = 1024;
