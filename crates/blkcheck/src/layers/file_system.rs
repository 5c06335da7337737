//! The file systems that blkfs reads.

use std::ops::ControlFlow;

use blkfs::{Entry, Extent, FileSystem, Mismatch, Names, Owner, Problem, Visitor, Wanted};

use crate::coverage::Coverage;
use crate::error::{Error, Result};
use crate::finding::{Finding, FindingKind};
use crate::found::Layer;
use crate::report::Row;
use crate::tally::{Job, Tally, of_bytes};

/// Walks over a file system, verifies its checksums, and names the files that are hit.
pub(crate) fn verify(job: &mut Job<'_>, layer: &Layer, file_system: &FileSystem) -> Result<Row> {
    let mut tally = job.tally(layer, file_system.kind().name());
    tally.row.label = file_system.label();
    tally.row.uuid = file_system.uuid();
    file_system.remarks().into_iter().for_each(|remark| tally.remark(remark));
    let mut walk = Walk {
        tally: &mut tally,
        kept: Vec::new(),
        content: Coverage::default(),
        is_stopped: false,
    };
    let walked = file_system.walk(Wanted { checks: true, extents: true, names: false }, &mut walk);
    let Walk { kept, mut content, is_stopped, .. } = walk;
    let unprotected = content.total().min(file_system.size());
    match walked {
        Err(blkfs::Error::Cancelled) => return Err(Error::Cancelled),
        _ if is_stopped => return Err(Error::Cancelled),
        Err(blkfs::Error::Image(error)) => tally.finding(of_bytes(error)?),
        Err(error) => {
            tally.finding(Finding::new(FindingKind::Damaged, "file system", 0, error.to_string()));
        }
        Ok(()) => {}
    }
    name(&mut tally, file_system, kept);
    tally.row.unprotected = Some(unprotected);
    if let Some(tree) = &layer.tree {
        tally.protect(tree);
    }
    let is_whole = file_system.size() <= layer.window.size();
    if !is_whole && tally.row.verdict() == crate::Verdict::Clean {
        let size = file_system.size();
        let finding = match layer.missing {
            0 => {
                let reason = format!("it has {size} bytes, and its place is smaller");
                Finding::new(FindingKind::Damaged, "file system", 0, reason)
            }
            _ => layer.cut_off(),
        };
        tally.finding(finding);
    } else if layer.missing > 0 {
        tally.remark(format!("the image ends {} bytes before the partition does", layer.missing));
    }
    Ok(tally.finish())
}

/// Passes on findings with the paths of the files that they hit. The names are read only if there are any.
fn name(tally: &mut Tally<'_, '_>, file_system: &FileSystem, kept: Vec<Finding>) {
    let max_paths = tally.options().max_paths;
    let has_objects = max_paths > 0 && kept.iter().any(|finding| finding.object.is_some());
    let names = if has_objects { Names::read(file_system).ok() } else { None };
    for finding in kept {
        let paths = names.as_ref().zip(finding.object);
        let paths = paths.map(|(names, object)| names.paths(object, max_paths));
        tally.finding(Finding { paths: paths.unwrap_or_default(), ..finding });
    }
}

struct Walk<'w, 't, 'a> {
    tally: &'w mut Tally<'t, 'a>,
    /// Findings that are passed on when names are known.
    kept: Vec<Finding>,
    content: Coverage,
    is_stopped: bool,
}

impl Walk<'_, '_, '_> {
    fn add(&mut self, finding: Finding) {
        let limit = self.tally.left().map_or(MAX_KEPT, |left| MAX_KEPT.min(left as usize));
        if self.kept.len() < limit {
            self.kept.push(finding);
        } else {
            self.tally.count(finding.kind, finding.count);
        }
    }
}

impl Visitor for Walk<'_, '_, '_> {
    fn extent(&mut self, extent: Extent) {
        if let Owner::File { .. } = extent.owner {
            self.content.add(extent.offset, extent.length);
        }
    }

    fn matched(&mut self, structure: &'static str, count: u64, bytes: u64) {
        self.tally.matched(structure, count, bytes);
    }

    fn mismatch(&mut self, mismatch: Mismatch) {
        self.add(mismatch.into());
    }

    fn entry(&mut self, _: Entry<'_>) {}

    fn problem(&mut self, problem: Problem) {
        self.add(problem.into());
    }

    fn advance(&mut self, bytes: u64) -> ControlFlow<()> {
        let flow = self.tally.advance(bytes, None);
        self.is_stopped |= flow.is_break();
        flow
    }
}

/// Maximum number of findings of a file system that are passed on. The others are counted.
/// Limit in findings.
const MAX_KEPT: usize = 100_000;
