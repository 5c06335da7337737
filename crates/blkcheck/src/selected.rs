//! An image or a partition of it, for callers that watch a [`blksum::Progress`].

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use blkimage::{OpenOptions, Source};
use blksum::Selected;

use crate::check::check;
use crate::error::Result;
use crate::finding::Finding;
use crate::image::{check_image, check_unopened_image, unopened_disk};
use crate::options::{Options, Progress};
use crate::place::Place;
use crate::report::{Report, Row};
use crate::sink::Sink;

/// Verifies the structure of an image, unless only a part of it was selected, and then the layers of its content.
///
/// The total of `progress` grows with each layer, and is what was read in the end.
///
/// # Errors
///
/// Fails if `progress` is cancelled, if the file of the image cannot be read, or if it changed while it was read. What is
/// damaged or cannot be read is a finding.
pub fn check_selected(
    selected: &Selected,
    options: &Options,
    progress: &blksum::Progress,
    sink: &mut dyn Sink,
) -> Result<Report> {
    let layers = Layers::new(progress);
    let watch = |read: &Progress<'_>| layers.advance(read);
    let mut counted = Counted { sink, count: 0 };
    let mut report = Report::default();
    if selected.part().is_none() {
        let row = check_image(selected.image(), options, &watch, &mut counted)?;
        report.rows.extend(row);
    }
    selected.image().check_digests()?;
    let left = options.max_findings.map(|most| most.saturating_sub(counted.count));
    let disk: Arc<dyn Source> = Arc::new(selected.source().clone());
    let found = check(&disk, &options.with_max_findings(left), &watch, &mut counted)?;
    report.rows.extend(found.rows);
    progress.set_total(progress.done());
    Ok(report)
}

/// Verifies the structure of an image whose content cannot be opened for `reason`, which is a finding. Returns `None` if its
/// format has none that is verified.
///
/// # Errors
///
/// Fails as [`check_selected`] does, or if the file has no valid header.
pub fn check_unopened(
    path: &Path,
    opening: &OpenOptions,
    reason: &str,
    options: &Options,
    progress: &blksum::Progress,
    sink: &mut dyn Sink,
) -> Result<Option<Report>> {
    let layers = Layers::new(progress);
    let watch = |read: &Progress<'_>| layers.advance(read);
    let Some(row) = check_unopened_image(path, opening, options, &watch, sink)? else {
        return Ok(None);
    };
    progress.set_total(progress.done());
    Ok(Some(Report { rows: vec![row, unopened_disk(reason, sink)] }))
}

/// Adds up what is read of the layers.
struct Layers<'a> {
    progress: &'a blksum::Progress,
    last: Mutex<Option<Layer>>,
}

/// The layer that is read.
struct Layer {
    place: Place,
    kind: &'static str,
    /// What was read before.
    before: u64,
}

impl<'a> Layers<'a> {
    fn new(progress: &'a blksum::Progress) -> Self {
        Self { progress, last: Mutex::new(None) }
    }

    /// Adds what was read.
    fn advance(&self, read: &Progress<'_>) -> ControlFlow<()> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.progress.done();
        let is_same = |it: &&mut Layer| it.kind == read.kind && it.place == *read.place;
        let before = match last.as_mut().filter(is_same) {
            Some(layer) => layer.before,
            None => {
                *last = Some(Layer { place: read.place.clone(), kind: read.kind, before });
                before
            }
        };
        self.progress.advance(read.bytes, read.bytes);
        let total = before.saturating_add(read.total.unwrap_or(0));
        self.progress.set_total(total.max(self.progress.done()));
        match self.progress.is_cancelled() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Counts the findings that are passed on.
struct Counted<'a> {
    sink: &'a mut dyn Sink,
    count: u64,
}

impl Sink for Counted<'_> {
    fn finding(&mut self, place: &Place, kind: &'static str, finding: &Finding) {
        self.count += 1;
        self.sink.finding(place, kind, finding);
    }

    fn row(&mut self, row: &Row) {
        self.sink.row(row);
    }
}
