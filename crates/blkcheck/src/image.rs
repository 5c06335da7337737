//! The structure of an image itself: the reference counts and tables of its format.

use std::ops::ControlFlow;
use std::path::Path;

use blkimage::check::{Reason, Severity, Summary, Visitor};
use blkimage::{Format, Image, OpenOptions};

use crate::error::{Error, Result};
use crate::finding::{Finding, FindingKind};
use crate::options::{Options, Progress, Watch};
use crate::place::{Place, Step};
use crate::report::{Report, Row};
use crate::sink::Sink;

/// Verifies the reference counts and tables of an image, as `qemu-img check` does. Returns `None` if it is raw, and a row that
/// verified nothing if its format has no check.
///
/// # Errors
///
/// Fails if `watch` cancels it, or if the file cannot be read. What is damaged is a finding.
pub fn check_image(
    image: &Image,
    options: &Options,
    watch: &Watch<'_>,
    sink: &mut dyn Sink,
) -> Result<Option<Row>> {
    let kind = image.format().name();
    run(kind, options, watch, sink, |visitor| image.check_structure(visitor))
}

/// Does the same for an image whose content cannot be opened.
///
/// # Errors
///
/// Fails as [`check_image`] does, or if the file has no valid header.
pub fn check_unopened_image(
    path: &Path,
    opening: &OpenOptions,
    options: &Options,
    watch: &Watch<'_>,
    sink: &mut dyn Sink,
) -> Result<Option<Row>> {
    run("image", options, watch, sink, |visitor| opening.check_structure(path, visitor))
}

/// Returns the row of a disk whose image cannot be opened, for `reason`.
pub fn unopened_disk(reason: &str, sink: &mut dyn Sink) -> Row {
    let mut row = Row { kind: "unknown", ..Row::default() };
    row.count(FindingKind::Unreadable, 1);
    sink.finding(
        &row.place,
        row.kind,
        &Finding::new(FindingKind::Unreadable, "content", 0, reason),
    );
    sink.row(&row);
    row
}

/// Returns the report on an image that violates the rules of its format, for `reason`, so that nothing else can be said.
pub fn damaged_image(reason: &str, sink: &mut dyn Sink) -> Report {
    let mut row = Row { place: Place(vec![Step::Image]), kind: "image", ..Row::default() };
    row.count(FindingKind::Damaged, 1);
    let finding = Finding::new(FindingKind::Damaged, "content", 0, reason);
    sink.finding(&row.place, row.kind, &finding);
    sink.row(&row);
    Report { rows: vec![row] }
}

fn run(
    kind: &'static str,
    options: &Options,
    watch: &Watch<'_>,
    sink: &mut dyn Sink,
    check: impl FnOnce(&mut dyn Visitor) -> blkimage::Result<Option<Summary>>,
) -> Result<Option<Row>> {
    let place = Place(vec![Step::Image]);
    let row = Row { place, kind, ..Row::default() };
    let mut structure =
        Structure { row, left: options.max_findings, watch, sink, is_cancelled: false };
    let summary = check(&mut structure)?;
    let Structure { mut row, is_cancelled, .. } = structure;
    if is_cancelled {
        return Err(Error::Cancelled);
    }
    let Some(summary) = summary else {
        if kind == Format::Raw.name() {
            return Ok(None);
        }
        row.remarks
            .push("its tables are verified only as far as the content needs them".to_owned());
        sink.row(&row);
        return Ok(Some(row));
    };
    row.length = summary.units.saturating_mul(summary.unit);
    row.matched(summary.verified, summary.units, 0);
    row.remarks = remarks(&summary);
    row.structure = Some(summary);
    sink.row(&row);
    Ok(Some(row))
}

/// Passes on what a check of the structure finds.
struct Structure<'a> {
    row: Row,
    /// Number of findings that may still be passed on.
    left: Option<u64>,
    watch: &'a Watch<'a>,
    sink: &'a mut dyn Sink,
    is_cancelled: bool,
}

impl Visitor for Structure<'_> {
    fn finding(&mut self, found: blkimage::check::Finding) {
        let kind = match (found.severity, &found.reason) {
            // They are counted in the summary, and lose no content.
            (Severity::Leak | Severity::Outdated, _) => return,
            (Severity::Unchecked, Reason::Limit) => FindingKind::Skipped,
            (Severity::Unchecked, _) => FindingKind::Unreadable,
            _ => FindingKind::Damaged,
        };
        self.row.count(kind, found.count);
        if self.left != Some(0) {
            let guest = found.guest.map(|guest| format!(" (content at {guest})"));
            let reason = format!("{}{}", found.reason, guest.unwrap_or_default());
            let finding = Finding::new(kind, found.structure, found.offset, reason);
            let finding = Finding { length: found.length, count: found.count, ..finding };
            self.sink.finding(&self.row.place, self.row.kind, &finding);
            self.left = self.left.map(|left| left - 1);
        }
    }

    fn advance(&mut self, bytes: u64) -> ControlFlow<()> {
        let Row { place, kind, .. } = &self.row;
        let flow = (self.watch)(&Progress { place, kind, bytes, total: None });
        self.is_cancelled |= flow.is_break();
        flow
    }
}

/// Returns what to know of the structure besides its errors.
fn remarks(summary: &Summary) -> Vec<String> {
    let mut remarks = Vec::new();
    if summary.leaks > 0 {
        let bytes = summary.leaks.saturating_mul(summary.unit);
        remarks.push(format!(
            "leaked clusters: {} ({bytes} bytes), which waste space and lose no content",
            summary.leaks
        ));
    }
    if summary.outdated > 0 {
        remarks.push(format!(
            "reference counts out of date: {}, which are computed anew when the image is next opened for writing",
            summary.outdated
        ));
    }
    if !summary.is_complete {
        remarks.push("leaks were not looked for, as not all references could be read".to_owned());
    }
    if summary.is_dirty {
        remarks.push("the image was not closed by the program that wrote to it".to_owned());
    }
    if summary.is_marked_corrupt {
        remarks.push("a program has marked the image as damaged".to_owned());
    }
    remarks
}
