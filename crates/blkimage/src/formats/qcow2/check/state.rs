//! A check in progress: what all parts of it share, and how findings are reported.

use std::ops::{ControlFlow, Range};

use super::counts::Counts;
use super::input::Input;
use super::stored::Stored;
use crate::check::{Finding, Reason, Severity, Summary, Visitor};
use crate::error::{Error, ErrorKind, Result};
use crate::formats::qcow2::entry::Geometry;
use crate::formats::qcow2::header::{Header, SECTOR};
use crate::formats::two_level::Rules;

/// A check in progress.
pub(super) struct Check<'a> {
    pub input: Input<'a>,
    pub header: &'a Header,
    pub geometry: Geometry,
    pub visitor: &'a mut dyn Visitor,
    pub summary: Summary,
    /// Length of the file, rounded up to sectors as in QEMU.
    pub length: u64,
    /// Number of clusters of the file.
    pub clusters: u64,
    /// Whether a reference reaches into the cluster that begins at or after the end of the file.
    pub is_grown: bool,
    /// Whether this is the first pass. Whatever does not depend on counts is reported in this one.
    pub is_first: bool,
    pub is_stopped: bool,
    pub counts: Counts,
    pub stored: Stored<'a>,
}

/// The place of a reference in the file, for findings.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub structure: &'static str,
    pub offset: u64,
    pub length: u64,
    pub guest: Option<u64>,
}

impl<'a> Check<'a> {
    pub fn new(input: Input<'a>, header: &'a Header, visitor: &'a mut dyn Visitor) -> Result<Self> {
        let geometry = header.geometry();
        let (stored, failed) = Stored::read(input, header)?;
        let length = input.file.size().next_multiple_of(SECTOR);
        let clusters = length.div_ceil(geometry.cluster_size());
        let summary = Summary {
            unit: geometry.cluster_size(),
            units: clusters,
            verified: "reference count",
            is_complete: true,
            is_dirty: header.is_dirty,
            is_marked_corrupt: header.is_corrupt,
            ..Summary::default()
        };
        let mut check = Self {
            input,
            header,
            geometry,
            visitor,
            summary,
            length,
            clusters,
            is_grown: false,
            is_first: true,
            is_stopped: false,
            counts: Counts::new(0..0, 0),
            stored,
        };
        if let Some(error) = failed {
            check.unreadable("refcount table", header.refcounts.offset, &error);
        }
        Ok(check)
    }

    /// Counts references to the clusters of a range. Returns whether the range is in the file, or ends in the last
    /// cluster.
    pub fn count(&mut self, offset: u64, length: u64, references: u64) -> bool {
        let bits = self.geometry.cluster_bits();
        let Some(last) = length.checked_sub(1) else { return true };
        let Some(last) = offset.checked_add(last).filter(|last| !self.is_past(*last)) else {
            return false;
        };
        self.is_grown |= last >> bits >= self.clusters;
        self.counts.add_range(offset >> bits..(last >> bits) + 1, references);
        true
    }

    /// Returns whether a range whose last byte is at `last` is past the end of the file, by a cluster or more.
    pub fn is_past(&self, last: u64) -> bool {
        last >= self.length && last - self.length >= self.geometry.cluster_size() - 1
    }

    /// Counts references like [`count`](Self::count), and reports a range past the end of the file.
    pub fn refer(&mut self, source: Source, target: u64, length: u64, references: u64) {
        if !self.count(target, length, references) {
            self.error(source, Reason::PastEnd { target, length }, references);
        }
    }

    /// Reports an error, in the first pass.
    pub fn error(&mut self, source: Source, reason: Reason, count: u64) {
        if self.is_first {
            self.report(Severity::Error, source, reason, count);
        }
    }

    /// Returns the severity of a reference count that is too low, or a flag that depends on one.
    pub fn severity(&self) -> Severity {
        if self.header.is_dirty { Severity::Outdated } else { Severity::Error }
    }

    pub fn report(&mut self, severity: Severity, source: Source, reason: Reason, count: u64) {
        let Source { structure, offset, length, guest } = source;
        let finding = Finding { severity, structure, offset, length, guest, reason, count };
        self.summary.add(&finding);
        self.visitor.finding(finding);
    }

    /// Reports a part that was not checked. References may be missing.
    pub fn unchecked(&mut self, structure: &'static str, offset: u64, reason: Reason) {
        self.summary.is_complete = false;
        if self.is_first {
            let source = Source { structure, offset, length: 0, guest: None };
            self.report(Severity::Unchecked, source, reason, 1);
        }
    }

    /// Reports a part that cannot be read.
    pub fn unreadable(&mut self, structure: &'static str, offset: u64, error: &Error) {
        self.unchecked(structure, offset, Reason::Invalid(error.reason().to_owned()));
    }

    /// Reports a table whose structure is invalid, so that its references are unknown.
    pub fn invalid(&mut self, structure: &'static str, offset: u64, error: &Error) -> Result<()> {
        if !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Truncated | ErrorKind::Io) {
            return Err(Error::new(error.kind(), error.name(), error.reason()));
        }
        self.summary.is_complete = false;
        let source =
            Source { structure, offset: error.offset().unwrap_or(offset), length: 0, guest: None };
        self.error(source, Reason::Invalid(error.reason().to_owned()), 1);
        Ok(())
    }

    /// Reports how much was read. Returns whether the check continues.
    pub fn goes_on(&mut self) -> bool {
        let read = self.input.read.take();
        if read > 0 && self.visitor.advance(read) == ControlFlow::Break(()) {
            self.is_stopped = true;
            self.summary.is_complete = false;
        }
        !self.is_stopped
    }

    /// Returns the clusters that this pass compares, from the start of a page on.
    pub fn compared(&self) -> Range<u64> {
        let end = self.clusters + u64::from(self.is_grown);
        let window = self.counts.window();
        window.start..window.end.min(end).max(window.start)
    }
}
