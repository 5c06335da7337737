//! Compares the number of references to each cluster with the stored one.

use super::counts::PAGE;
use super::state::{Check, Source};
use super::stored;
use crate::check::{Reason, Severity};
use crate::error::Result;
use crate::formats::two_level::Rules;

/// Clusters in a row with the same counts, which differ.
#[derive(Clone, Copy)]
struct Run {
    start: u64,
    clusters: u64,
    /// `None` if the stored count cannot be read.
    stored: Option<u64>,
    references: u64,
}

impl Check<'_> {
    /// Compares the clusters of the window.
    pub fn compare(&mut self) -> Result<()> {
        let mut stored = Box::new([0; PAGE]);
        let mut run = None;
        let clusters = self.compared();
        for start in clusters.clone().step_by(PAGE) {
            let length = (clusters.end - start).min(PAGE as u64) as usize;
            let (unreadable, step) = match self.stored.page(start, &mut stored)? {
                stored::Page::Zero if self.counts.page(start).is_empty() => continue,
                stored::Page::Zero => {
                    stored.fill(0);
                    (0, PAGE)
                }
                stored::Page::Counts { unreadable, step } => (unreadable, step),
            };
            self.compare_page(
                start,
                &stored[..length],
                |index| unreadable >> (index / step) & 1 == 1,
                &mut run,
            );
            if !self.goes_on() {
                return Ok(());
            }
        }
        self.end_run(run.take());
        Ok(())
    }

    /// Compares the clusters of a page.
    fn compare_page(
        &mut self,
        start: u64,
        stored: &[u64],
        is_unreadable: impl Fn(usize) -> bool,
        run: &mut Option<Run>,
    ) {
        for (index, stored) in stored.iter().enumerate() {
            let references = self.counts.page(start).get(index);
            if *stored == references && !is_unreadable(index) {
                continue;
            }
            let stored = if is_unreadable(index) { None } else { Some(*stored) };
            let cluster = start + index as u64;
            match run {
                Some(run)
                    if run.start + run.clusters == cluster
                        && (run.stored, run.references) == (stored, references) =>
                {
                    run.clusters += 1;
                }
                _ => {
                    let next = Run { start: cluster, clusters: 1, stored, references };
                    let ended = run.replace(next);
                    self.end_run(ended);
                }
            }
        }
    }

    /// Reports clusters.
    fn end_run(&mut self, run: Option<Run>) {
        let Some(Run { start, clusters, stored, references }) = run else { return };
        let bits = self.geometry.cluster_bits();
        let (offset, length) = (start << bits, clusters << bits);
        let source = Source { structure: "cluster", offset, length, guest: None };
        let max = self.stored.max();
        if references > max {
            let count = (references - max).saturating_mul(clusters);
            self.report(Severity::Error, source, Reason::TooManyReferences { references }, count);
        }
        let (severity, reason) = match stored {
            None => (Severity::Unchecked, Reason::CountUnreadable),
            Some(stored) if stored == references.min(max) => return,
            Some(stored) => {
                let severity = match stored < references {
                    true => self.severity(),
                    // References may be missing.
                    false if !self.summary.is_complete => return,
                    false => Severity::Leak,
                };
                (severity, Reason::ReferenceCount { stored, references })
            }
        };
        self.report(severity, source, reason, clusters);
    }
}
