//! `blkhash map audit`: finds changes that a list of changes does not have.

use std::ffi::{OsStr, OsString};

use blkhash::Comparison;
use blkimage::OpenOption;
use blkmap::{Map, Report};
use blksum::changes::Changes;
use blksum::map::{Info, Pairing, check_parts};
use blksum::{Sides, Unreadable};

use super::args::Audit;
use super::compare::{self, compare, of_maps, of_other_part, partitions, refuse_salt};
use super::picture_file::PictureFile;
use super::relations::Labels;
use super::report::Differences;
use super::tracker::Opened;
use crate::blkhash::source::Data;
use crate::image::contents::Contents;
use crate::map::open;
use crate::problem::{Failure, Outcome, Problem, WithName as _};
use crate::progress::Reporter;

/// Judges the changes on the command line.
pub fn run(args: &Audit) -> Result<Outcome, Failure> {
    refuse_salt(&args.source)?;
    let picture = PictureFile::open(&args.output, &[&args.map, &args.image]);
    let picture = picture.map_err(Failure::usage)?;
    let has_format = args.source.opening.is_given(OpenOption::Format);
    let is_map = open::is_map(&args.image, has_format).named(&args.image)?;
    if is_map && args.tracker.changes.is_none() {
        return Err(Failure::usage(
            "two maps are judged with --changes: a bitmap or an overlay is in an image",
        ));
    }
    if is_map && let Some(option) = args.source.of_content() {
        return Err(Failure::usage(format!(
            "{option} says what of an image is read, and both are maps"
        )));
    }
    let tracker = Opened::open(&args.tracker)?;
    let maps = [Some(open::open(&args.map)), is_map.then(|| open::open(&args.image))];
    let names = (!is_map).then_some(&args.image).into_iter().chain(&args.tracker.reflink);
    let options = tracker.options(args.source.confine(names)?);
    let open = |name: &OsStr| Data::open(name, &options, &args.source);
    let reporter = Reporter::new(args.source.progress.when(), (!is_map).then_some(1));
    let [left, right] = maps;
    let left = left.expect("a map is given").named(&args.map)?;
    let job = Job { args, left: &left, picture, reporter: &reporter };
    let Some(right) = right else {
        let data = open(&args.image).named(&args.image)?;
        job.picture.check_apart(data.image()).map_err(Failure::usage)?;
        let changes = tracker.changes(&data, None, &open).named(&args.image)?;
        return job.with_image(&data, &changes);
    };
    let right = right.named(&args.image)?;
    let changes = tracker.list(right.commit().image_size()).named(&args.image)?;
    job.with_map(&right, &changes)
}

/// The state before the changes, and the output.
struct Job<'a> {
    args: &'a Audit,
    left: &'a Map,
    picture: PictureFile,
    reporter: &'a Reporter,
}

impl Job<'_> {
    fn with_image(self, data: &Data, changes: &Changes) -> Result<Outcome, Failure> {
        let Self { args, left, reporter, .. } = self;
        let pairing = Pairing::new(left, &data.selected).map_err(|other| of_other_part(&other));
        let pairing = pairing.named(&args.map)?;
        let contents = Contents::of(vec![data.shared_source()]);
        reporter.begin(&args.image);
        let outcome = self.run(pairing.sides(), partitions(data), contents, changes, |report| {
            compare(&pairing, [&args.map, &args.image], data, report, reporter)
        });
        reporter.end(&args.image, None);
        outcome
    }

    fn with_map(self, right: &Map, changes: &Changes) -> Result<Outcome, Failure> {
        let Self { args, left, .. } = self;
        check_parts(left, right).map_err(|other| of_other_part(&other)).named(&args.map)?;
        let size = |map: &Map| map.commit().image_size();
        let sides = Sides::new(left.header().block_size, size(left), size(right));
        let partitions = Info::of(right).map(|info| info.partitions()).unwrap_or_default();
        self.run(sides, partitions, Contents::default(), changes, |report| {
            blkmap::diff(left, right, report)
                .map_err(|error| of_maps(&error, &args.image).about(&args.map))?;
            Ok(Vec::new())
        })
    }

    /// Prints what `compare` finds and the list does not have.
    fn run(
        self,
        sides: Sides,
        partitions: Vec<blkimage::partition::Partition>,
        contents: Contents,
        changes: &Changes,
        compare: impl FnOnce(Report<'_>) -> Result<Vec<Unreadable>, Problem>,
    ) -> Result<Outcome, Failure> {
        // What only one of them has is not judged.
        let sides = Sides { part: Some((0, sides.left.min(sides.right))), ..sides };
        let [left, right]: [OsString; 2] = [self.args.map.clone(), self.args.image.clone()];
        let labels = Labels { left, right, partitions };
        let mut differences = Differences::new(&self.args.output, sides, labels);
        differences = differences.with_contents(contents);
        let mut audit = blksum::map::Audit::new(changes, sides.block_size);
        let mut take = |first, count, kind: Comparison| {
            audit.push(first, count, kind, &mut |first, count, is_listed| {
                let kind = match kind {
                    // Nothing tells whether the block changed.
                    Comparison::Unreadable => Comparison::Unknown,
                    kind if is_listed && kind.is_different() => Comparison::Equal,
                    kind => kind,
                };
                differences.push(first, count, kind);
            });
        };
        let compared = compare(Report::new(&mut take));
        let differences = differences.with_audit(audit.summary());
        compare::end(differences, &self.picture, compared, &self.args.map)
    }
}
