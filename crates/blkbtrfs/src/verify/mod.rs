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
//!    checksums.
//! 5. If blocks were lost, those below them are found through the extent tree ([`sweep`]).
//! 6. Data without checksums is read ([`unchecked`]), and the parities of RAID5 and RAID6 are compared
//!    ([`parity`]).
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
mod tally;
mod unchecked;
mod walk;

use std::collections::HashSet;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::backref::{Owners, Resolver};
use crate::error::Result;
use crate::filesystem::FileSystem;
use crate::rules::Rules;
use crate::tree::{BlockDefect, Parent, TreeBlock, TreeRoot, object};
use crate::used::Used;

pub use finding::{Category, Finding, Place, Problem, Subject};
pub use progress::Progress;

use self::join::Joiner;
use self::known::Outcome;
use self::metadata::{BlockBuffer, Counting};
use self::parity::Rows;
use self::tally::Tally;
use self::unchecked::Pieces;
use self::walk::{Leaf, Walker};

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
    /// Bytes in use by what protects them; `None` if the trees that tell are damaged, which is a
    /// finding, or on missing devices.
    pub used: Option<Used>,
    /// Whether trees were compared with each other: not if a part of one is lost or makes no sense.
    pub compared: bool,
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
    /// Bytes of data with checksums.
    pub data_bytes: u64,
    /// Bytes of data without checksums that were read, and compared with other mirrors.
    pub unchecked_bytes: u64,
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
        self.lacks_nothing() && self.used.is_some()
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
/// An image changed while it was read, or its server is gone. What is wrong with the file system is
/// a finding.
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
        rules: Rules::new(filesystem.superblock(), filesystem.chunks(), filesystem.summer().size()),
        tally: Tally::new(filesystem),
        is_coverage_known: AtomicBool::new(false),
        counters: Counters::default(),
        has_parity: filesystem.chunks().iter().any(|chunk| chunk.profile.parities() > 0),
        known_bad: Mutex::default(),
    };
    superblocks::verify(&job);
    let walker = Mutex::new(Walker::new(filesystem));
    on_threads(options.threads, || job.work(&walker));
    job.report_missing_trees();
    job.is_coverage_known.store(!job.has_lost_blocks(), Ordering::Relaxed);
    let trees = walker.lock().expect("no thread panicked").begin_files();
    on_threads(options.threads, || job.work(&walker));
    let walker = walker.into_inner().expect("no thread panicked");
    let compared = job.compare_trees(&walker, &trees);
    if job.has_lost_blocks() {
        sweep::verify(&job, &walker);
    }
    job.verify_unchecked(options.threads);
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
        summary.used = Some(job.tally.space().used());
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

/// What the threads share.
struct Job<'a> {
    filesystem: &'a FileSystem,
    progress: &'a Progress,
    observer: &'a (dyn Fn(&Finding) + Sync),
    joiner: Mutex<Joiner>,
    /// Findings that the observer may still be told of.
    left: AtomicU64,
    resolver: Resolver<'a>,
    rules: Rules<'a>,
    tally: Tally<'a>,
    /// Whether all of the checksum tree was seen.
    is_coverage_known: AtomicBool,
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
    fn verify_leaves(&self, batch: &[Leaf], buffers: &mut Buffers) -> Vec<Outcome> {
        let Buffers { blocks, data } = buffers;
        let mut outcomes = Vec::with_capacity(batch.len());
        let expected: Vec<_> = batch.iter().map(|leaf| leaf.expected).collect();
        let verified = self.verify_blocks(&expected, blocks, Counting::Yes);
        for (leaf, (outcome, block)) in batch.iter().zip(verified) {
            outcomes.push(outcome);
            let Some(block) = block else { continue };
            self.examine(&block, leaf);
            if data::may_have_checksums(block.owner()) {
                self.verify_data(&block, data);
            }
        }
        outcomes
    }

    /// Looks at what a good leaf says.
    fn examine(&self, block: &TreeBlock, leaf: &Leaf) {
        if let Err(defect) = self.rules.check(block, leaf.expected.tree) {
            let owners = self.owners(|resolver| resolver.tree_block(&leaf.expected));
            let (place, length) = ((leaf.expected.tree, 0), self.filesystem.node_size());
            let finding =
                Finding::of_tree_block(place, Some(leaf.expected.logical), length, defect);
            self.report(Finding { parent: leaf.expected.parent, owners, ..finding });
        }
        self.tally.take(self, block, leaf);
    }

    /// Compares trees with each other, if all of them are there and make sense; returns whether that
    /// is so.
    fn compare_trees(&self, walker: &Walker<'_>, trees: &[(u64, TreeRoot)]) -> bool {
        let count = |category| self.counters.findings[category as usize].load(Ordering::Relaxed);
        let is_sound = count(Category::TreeHeader) + count(Category::TreeItem) == 0;
        if self.has_lost_blocks() || !is_sound {
            return false;
        }
        let is_whole = walker.is_whole();
        let unreached = match is_whole && !self.tally.has_other_references() {
            true => 0,
            false => sweep::report_unreached(self, walker),
        };
        for range in self.tally.space().uncovered_in_logs().iter() {
            self.report_uncovered(range.clone());
        }
        self.tally.compare(self, trees, is_whole && unreached == 0);
        true
    }

    /// Reads data without checksums, of files that promise none.
    fn verify_unchecked(&self, threads: usize) {
        let ranges = self.tally.space().unchecked();
        if !ranges.is_empty() {
            let pieces = Mutex::new(Pieces::new(ranges));
            on_threads(threads, || unchecked::verify(self, &pieces));
        }
    }

    fn has_lost_blocks(&self) -> bool {
        self.counters.lost_blocks.load(Ordering::Relaxed) > 0
    }

    fn is_coverage_known(&self) -> bool {
        self.is_coverage_known.load(Ordering::Relaxed)
    }

    /// Reports trees that there must be and are not.
    fn report_missing_trees(&self) {
        let superblock = self.filesystem.superblock();
        let optional = [
            (superblock.has_free_space_tree(), object::FREE_SPACE_TREE),
            (superblock.has_block_group_tree(), object::BLOCK_GROUP_TREE),
        ];
        let optional = optional.into_iter().filter(|(is_there, _)| *is_there);
        for tree in object::ALWAYS.into_iter().chain(optional.map(|(_, tree)| tree)) {
            if let Ok(None) = self.filesystem.tree_root(tree) {
                add(&self.counters.lost_blocks, 1);
                let reason = format!("the root tree has no {}", object::tree_name(tree));
                let (logical, length) = (superblock.root.logical, self.filesystem.node_size());
                let defect = BlockDefect::Structure(reason);
                let place = (object::ROOT_TREE, superblock.root.level);
                let finding = Finding::of_tree_block(place, Some(logical), length, defect);
                self.report(Finding { parent: Some(Parent::Superblock), ..finding });
            }
        }
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

    fn report(&self, finding: Finding) {
        if self.filesystem.down().is_some() {
            return;
        }
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
        self.counters.findings[category as usize].fetch_add(finding.blocks, Ordering::Relaxed);
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
    unchecked_bytes: AtomicU64,
    checksums: AtomicU64,
    rebuilt_bytes: AtomicU64,
    parity_bytes: AtomicU64,
    findings: [AtomicU64; Category::ALL.len()],
    missing_bytes: AtomicU64,
    lost_blocks: AtomicU64,
}

impl Counters {
    fn summary(&self, filesystem: &FileSystem) -> Summary {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Summary {
            verified: Verified {
                superblocks: value(&self.superblocks),
                tree_blocks: value(&self.tree_blocks),
                tree_bytes: value(&self.tree_bytes),
                data_bytes: value(&self.data_bytes),
                unchecked_bytes: value(&self.unchecked_bytes),
                checksums: value(&self.checksums),
                rebuilt_bytes: value(&self.rebuilt_bytes),
                parity_bytes: value(&self.parity_bytes),
            },
            findings: self.findings.each_ref().map(value),
            missing_devices: filesystem.missing_devices().len(),
            missing_bytes: value(&self.missing_bytes),
            lost_blocks: value(&self.lost_blocks),
            used: None,
            compared: false,
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
