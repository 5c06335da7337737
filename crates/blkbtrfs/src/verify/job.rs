//! State shared by the threads of a verification, and the reporting of findings.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::adjacent::Joiner;
use super::finding::{Category, Finding, Problem, Subject};
use super::options::{Options, Watch};
use super::summary::Counters;
use crate::backref::{Owners, Resolver};
use crate::error::{Error, Result};
use crate::filesystem::FileSystem;

/// State shared by the threads of a verification.
pub(super) struct Job<'a> {
    pub(super) filesystem: &'a FileSystem,
    watch: &'a Watch<'a>,
    observer: &'a (dyn Fn(&Finding) + Sync),
    joiner: Mutex<Joiner>,
    /// Number of findings that may still be passed to the observer.
    left: AtomicU64,
    pub(super) resolver: Resolver<'a>,
    pub(super) counters: Counters,
    pub(super) has_parity: bool,
    /// Sectors with findings, by device and address. Recorded only if there are parities.
    known_bad: Mutex<HashSet<(u64, u64)>>,
}

impl<'a> Job<'a> {
    pub(super) fn new(
        filesystem: &'a FileSystem,
        options: &Options,
        watch: &'a Watch<'a>,
        observer: &'a (dyn Fn(&Finding) + Sync),
    ) -> Self {
        Self {
            filesystem,
            watch,
            observer,
            joiner: Mutex::new(Joiner::new(options.max_owners)),
            left: AtomicU64::new(options.max_findings.unwrap_or(u64::MAX)),
            resolver: Resolver::new(filesystem, options.max_owners),
            counters: Counters::default(),
            has_parity: filesystem.chunks().iter().any(|chunk| chunk.profile.parities() > 0),
            known_bad: Mutex::default(),
        }
    }

    /// Reports bytes that were verified.
    pub(super) fn advance(&self, bytes: u64) {
        // The loops over batches look whether the work is cancelled.
        let _ = (self.watch)(bytes);
    }

    /// Returns whether the work is cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        (self.watch)(0).is_break()
    }

    /// Fails if the work is cancelled.
    pub(super) fn check_cancelled(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Returns whether any reference has no good tree block.
    pub(super) fn has_lost_blocks(&self) -> bool {
        self.counters.lost_blocks.load(Ordering::Relaxed) > 0
    }

    /// Returns whether no finding concerns the header, structure or items of a tree block.
    pub(super) fn are_trees_sound(&self) -> bool {
        let count = |category| self.counters.findings[category as usize].load(Ordering::Relaxed);
        count(Category::TreeHeader) + count(Category::TreeItem) == 0
    }

    /// Returns whether a sector has a finding. If too many have one, returns true for all.
    pub(super) fn is_known_bad(&self, device: u64, physical: u64) -> bool {
        let known = self.known_bad.lock().expect("no thread panicked");
        known.len() == MAX_KNOWN_BAD || known.contains(&(device, physical))
    }

    /// Finds the owners of a block, unless the observer gets no more findings.
    pub(super) fn owners(&self, find: impl FnOnce(&Resolver<'_>) -> Owners) -> Owners {
        match self.left.load(Ordering::Relaxed) {
            0 => Owners { is_partial: true, ..Owners::default() },
            _ => find(&self.resolver),
        }
    }

    /// Counts a finding, and passes it on once no other joins it any more.
    pub(super) fn report(&self, finding: Finding) {
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

    /// Reports that trees contradict each other.
    pub(super) fn report_contradiction(
        &self,
        subject: Subject,
        at: Option<u64>,
        length: u64,
        reason: impl Into<String>,
    ) {
        let problem = Problem::Contradiction(reason.into());
        self.report(Finding { logical: at, ..Finding::new(subject, problem, length) });
    }

    /// Passes on the findings that were held back.
    pub(super) fn flush(&self) {
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

/// Maximum size of a tree block.
const MAX_BLOCK: u64 = 64 << 10;

/// Maximum number of sectors with findings that are recorded if there is parity. They take a few
/// MiB of memory.
/// Limit in sectors.
const MAX_KNOWN_BAD: usize = 64 << 10;
