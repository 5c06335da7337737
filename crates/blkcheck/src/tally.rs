//! The row of a layer while it is verified.

use std::ops::ControlFlow;

use blkfs::volumes::Checks;

use crate::error::{Error, Result};
use crate::finding::{Finding, FindingKind};
use crate::found::Layer;
use crate::options::{Options, Progress, Watch};
use crate::place::Place;
use crate::report::Row;
use crate::sink::Sink;
use crate::window::Window;

/// What a check has besides its layers.
pub(crate) struct Job<'a> {
    pub options: &'a Options,
    pub watch: &'a Watch<'a>,
    sink: &'a mut dyn Sink,
    /// Number of findings that may still be passed on.
    left: Option<u64>,
}

impl<'a> Job<'a> {
    pub fn new(options: &'a Options, watch: &'a Watch<'a>, sink: &'a mut dyn Sink) -> Self {
        Self { options, watch, sink, left: options.max_findings }
    }

    /// Begins a layer.
    pub fn tally<'t>(&'t mut self, layer: &'t Layer, kind: &'static str) -> Tally<'t, 'a> {
        let window = &layer.window;
        let row = Row {
            place: layer.place.clone(),
            offset: window.on_disk(0),
            length: window.size(),
            kind,
            remarks: layer.remarks.clone(),
            ..Row::default()
        };
        Tally { row, window, job: self }
    }
}

/// Counts what is found in a layer, and passes it on.
pub(crate) struct Tally<'t, 'a> {
    pub row: Row,
    pub window: &'t Window,
    job: &'t mut Job<'a>,
}

impl<'a> Tally<'_, 'a> {
    pub fn options(&self) -> &Options {
        self.job.options
    }

    pub fn matched(&mut self, structure: &'static str, count: u64, bytes: u64) {
        self.row.matched(structure, count, bytes);
    }

    /// Counts a finding in the window of the layer, and passes it on.
    pub fn finding(&mut self, finding: impl Into<Finding>) {
        let finding = finding.into();
        let disk_offset = self.window.on_disk(finding.offset);
        self.finding_on_disk(&Finding { disk_offset, ..finding });
    }

    /// Counts a finding whose place on the disk is known, and passes it on.
    pub fn finding_on_disk(&mut self, finding: &Finding) {
        self.row.count(finding.kind, finding.count);
        if self.takes_more() {
            self.job.sink.finding(&self.row.place, self.row.kind, finding);
            self.job.left = self.job.left.map(|left| left - 1);
        }
    }

    /// Counts findings that are not passed on.
    pub fn count(&mut self, kind: FindingKind, count: u64) {
        self.row.count(kind, count);
    }

    /// Returns whether findings are still passed on.
    pub fn takes_more(&self) -> bool {
        self.job.left != Some(0)
    }

    /// Returns the number of findings that are still passed on.
    pub fn left(&self) -> Option<u64> {
        self.job.left
    }

    /// Adds the structures of a header that were verified.
    pub fn checks(&mut self, checks: &Checks) {
        for matched in &checks.matched {
            self.matched(matched.structure, 1, matched.length);
        }
        checks.mismatches.iter().for_each(|mismatch| self.finding(mismatch.clone()));
        checks.problems.iter().for_each(|problem| self.finding(problem.clone()));
        checks.remarks.iter().for_each(|remark| self.remark(remark));
    }

    /// Takes into account that a hash tree covers the content.
    pub fn protect(&mut self, tree: &Place) {
        self.row.unprotected = Some(0);
        self.remark(format!("a hash tree protects all of it: {tree}"));
    }

    pub fn remark(&mut self, remark: impl Into<String>) {
        self.row.remarks.push(remark.into());
    }

    /// Tells the watch that bytes were read.
    pub fn advance(&self, bytes: u64, total: Option<u64>) -> ControlFlow<()> {
        self.progress()(bytes, total)
    }

    /// Returns what tells the watch that bytes were read, for other threads.
    pub fn progress(&self) -> impl Fn(u64, Option<u64>) -> ControlFlow<()> + Sync + use<'a> {
        let (watch, place, kind) = (self.job.watch, self.row.place.clone(), self.row.kind);
        move |bytes, total| watch(&Progress { place: &place, kind, bytes, total })
    }

    /// Ends the layer.
    pub fn finish(self) -> Row {
        self.job.sink.row(&self.row);
        self.row
    }
}

/// Returns the error of a read, unless it is only about the bytes that were read.
pub(crate) fn of_bytes(error: blkimage::Error) -> Result<Finding> {
    if error.kind() == blkimage::ErrorKind::Changed {
        return Err(Error::Image(error));
    }
    let cause = error.io_error().map(|cause| format!(": {cause}")).unwrap_or_default();
    let reason = format!("{}{cause}", error.reason());
    Ok(Finding::new(FindingKind::Unreadable, "layer", 0, reason))
}
