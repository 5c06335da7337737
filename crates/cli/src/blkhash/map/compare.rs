//! `blkhash map verify` and `blkhash map diff`: compare maps and images.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;

use blkhash::{BlockSize, Sink, SinkError};
use blkimage::partition::{self, Partition};
use blkimage::{OpenOptions, Source};
use blkmap::{Map, Report, Side};
use blksum::{ComparedRun, ShortEnd};

use super::args::{self, Diff, Verify};
use super::counterpart::Counterpart;
use super::kind::Labels;
use super::picture_file::PictureFile;
use super::report::{Differences, Sizes};
use super::tail::{self, End};
use crate::blkhash::source::{Data, Failed, fail, shown};
use crate::blkhash::source_args::SourceArgs;
use crate::blkhash::verdict::{Failure, Outcome};
use crate::blkhash::{PROGRAM, refuse};
use crate::map::compare::{self, compare};
use crate::map::{info, open};
use crate::messages;
use crate::progress::Reporter;

/// Compares an image with its map.
pub fn verify(args: &Verify) -> Result<Outcome, Failure> {
    let refused = |reason: String| Failure::Refused(refuse(reason));
    refuse_salt(&args.source)?;
    let key = open::key(args.key_file.as_deref()).map_err(refused)?;
    let picture = PictureFile::open(&args.output, &[&args.map, &args.image]).map_err(refused)?;
    let map = open::open(&args.map).and_then(|map| match &key {
        Some(key) => map.check_seal(key).map(|()| map),
        None => Ok(map),
    });
    let options = args.source.confine([&args.image]).map_err(Failure::Refused)?;
    let map = match map {
        Ok(map) => map,
        Err(error) => return Ok(failed(&args.map, &of_map(&error))),
    };
    let reporter = Reporter::new(PROGRAM, args.source.progress.when(), Some(1));
    reporter.begin(&args.image);
    let data = match Data::open(&args.image, &options, &args.source) {
        Ok(data) => data,
        Err(reason) => return Ok(failed(&args.image, &Failed { reason, is_changed: false })),
    };
    picture.check_apart(&data.image).map_err(refused)?;
    let pages = map.pages();
    let page = map.header().blocks_per_page().saturating_mul(map.header().block_size.into());
    let pages = match (args.shard, args.range) {
        (Some(shard), _) => shard.pages(pages),
        (_, Some(range)) => {
            let size = map.commit().image_size;
            if range.from >= size {
                return Err(refused(format!("--range: the image of the map ends at {size}")));
            }
            range.pages(page, pages)
        }
        _ => (0, pages),
    };
    let job =
        Job { print: &args.output, names: [args.map.as_os_str(), args.image.as_os_str()], picture };
    let counterpart = match Counterpart::find(&map, &data, args.source.partition) {
        Ok(Counterpart::Partition(_)) if args.shard.is_some() || args.range.is_some() => {
            return Err(refused(SHARD_OF_PARTITION.into()));
        }
        Ok(found) => found,
        Err(reason) => return Ok(failed(&args.map, &Failed { reason, is_changed: false })),
    };
    if counterpart == Counterpart::All {
        note_other_part(&args.map, &map, args.source.partition);
    }
    if !args.output.quiet {
        note_other_state(&args.map, &map, &data, &args.source);
    }
    let mut sizes = Sizes {
        block_size: map.header().block_size.into(),
        left: map.commit().image_size,
        right: data.size(),
        part: None,
        ignores_tail: false,
    };
    if pages != (0, map.pages()) {
        // The last part includes what the image has behind the end of the map.
        let at = |number: u64| number.saturating_mul(page);
        let to = if pages.1 == map.pages() { u64::MAX } else { at(pages.1) };
        sizes.part = Some((at(pages.0), to));
    }
    if let Counterpart::Partition(partition) = counterpart {
        sizes = partition.sizes(sizes);
    } else if args.ignore_zero_tail && pages.1 == map.pages() {
        match tail::is_zero([End::Map(&map, &args.map), End::Image(&data)], &reporter) {
            Ok(is_zero) => sizes.ignores_tail = is_zero,
            Err((name, failure)) => return Ok(failed(&name, &failure)),
        }
    }
    let outcome = job.run(sizes, partitions(&data), |report| {
        let compared =
            Compared { map: &map, map_name: &args.map, side: Side::Left, data: &data, counterpart };
        compared.run(pages, report, &reporter)
    });
    reporter.end(&args.image, None);
    outcome
}

/// Compares two maps, two images, or a map and an image.
pub fn diff(args: &Diff) -> Result<Outcome, Failure> {
    let refused = |reason: String| Failure::Refused(refuse(reason));
    refuse_salt(&args.source)?;
    let names = [&args.left, &args.right];
    let picture = PictureFile::open(&args.output, &names).map_err(refused)?;
    let has_format = args.source.opening.format.is_some();
    let mut are_maps = [false; 2];
    for (name, is_map) in names.into_iter().zip(&mut are_maps) {
        match open::is_map(name, has_format) {
            Ok(found) => *is_map = found,
            Err(reason) => {
                return Ok(failed(name, &Failed { reason: reason.into(), is_changed: false }));
            }
        }
    }
    if args.block_size.is_some() && are_maps != [false; 2] {
        return Err(refused("--block-size is for two images: a map has its own".into()));
    }
    if are_maps == [true; 2]
        && let Some(option) = image_option(&args.source)
    {
        return Err(refused(format!(
            "{option} says what of an image is read, and both are maps: make maps with {option}, or leave it out"
        )));
    }
    if let Some(snapshot) = &args.source.opening.snapshot
        && are_maps == [false; 2]
        && is_same_file(names)
    {
        let (snapshot, name) = (shown(snapshot.as_ref()), shown(names[0]));
        return Err(refused(format!(
            "both are the same image with --snapshot {snapshot}: make a map of the snapshot with 'blkhash map create \
             --snapshot {snapshot} -o snapshot.blkmap {name}', then 'blkhash map diff snapshot.blkmap {name}'"
        )));
    }
    let maps = [0, 1].map(|side| are_maps[side].then(|| open::open(names[side])));
    let images = [0, 1].into_iter().filter(|side| !are_maps[*side]).map(|side| names[side]);
    let options = args.source.confine(images).map_err(Failure::Refused)?;
    let count = are_maps.iter().filter(|is_map| !**is_map).count() as u64;
    let reporter = Reporter::new(PROGRAM, args.source.progress.when(), Some(count));
    let mut sides = Vec::new();
    for (name, map) in names.into_iter().zip(maps) {
        match Input::open(name, map, &options, args) {
            Ok(side) => sides.push(side),
            Err(failure) => return Ok(failed(name, &failure)),
        }
    }
    for side in &sides {
        if let Input::Image(data) = side {
            picture.check_apart(&data.image).map_err(refused)?;
        }
    }
    let job = Job { print: &args.output, names: names.map(OsString::as_os_str), picture };
    let (Some(right), Some(left)) = (sides.pop(), sides.pop()) else { unreachable!("two sides") };
    let counterpart = match counterpart(&left, &right, names, args.source.partition) {
        Ok(found) => found,
        Err((name, failure)) => return Ok(failed(&name, &failure)),
    };
    let ends = [left.end(names[0]), right.end(names[1])];
    let mut sizes = Sizes {
        block_size: left
            .block_size()
            .or(right.block_size())
            .or(args.block_size)
            .unwrap_or_default()
            .into(),
        left: ends[0].size(),
        right: ends[1].size(),
        part: None,
        ignores_tail: false,
    };
    if let Counterpart::Partition(partition) = counterpart {
        sizes = partition.sizes(sizes);
    } else if args.ignore_zero_tail {
        match tail::is_zero(ends, &reporter) {
            Ok(is_zero) => sizes.ignores_tail = is_zero,
            Err((name, failure)) => return Ok(failed(&name, &failure)),
        }
    }
    let partitions_of = |side: &Input| match (side, counterpart) {
        // The table is that of the disk, and offsets are those in the partition.
        (Input::Map(_), Counterpart::Partition(_)) => None,
        _ => side.partitions(),
    };
    let partitions = partitions_of(&right).or_else(|| partitions_of(&left)).unwrap_or_default();
    match (&left, &right) {
        (Input::Map(left), Input::Map(right)) => job.run(sizes, partitions, |report| {
            blkmap::diff(left, right, report)
                .map_err(|error| (names[0].clone(), of_maps(&error, names[1])))
        }),
        (Input::Map(map), Input::Image(data)) | (Input::Image(data), Input::Map(map)) => {
            let is_left = are_maps[0];
            let (map_name, image) =
                if is_left { (names[0], names[1]) } else { (names[1], names[0]) };
            let side = if is_left { Side::Left } else { Side::Right };
            if !args.output.quiet {
                note_other_state(map_name, map, data, &args.source);
            }
            reporter.begin(image);
            let outcome = job.run(sizes, partitions, |report| {
                let compared = Compared { map, map_name, side, data, counterpart };
                compared.run((0, map.pages()), report, &reporter)
            });
            reporter.end(image, None);
            outcome
        }
        (Input::Image(left), Input::Image(right)) => {
            reporter.begin(names[0]);
            let block_size = args.block_size.unwrap_or_default();
            let outcome = job.run(sizes, partitions, |mut report| {
                let longer = if left.size() > right.size() { left } else { right };
                let end = ShortEnd::of(left.source(), right.source(), block_size)
                    .map_err(|error| (longer.name.clone(), longer.failed(error.into())))?;
                let mut sink = Runs { report: &mut report, end };
                left.compare(right, block_size, &mut sink, &reporter)
                    .map_err(|failed| (names[0].clone(), failed))?;
                report.end();
                Ok(())
            });
            reporter.end(names[0], None);
            outcome
        }
    }
}

/// One side of a comparison.
enum Input {
    Map(Box<Map>),
    Image(Box<Data>),
}

impl Input {
    fn open(
        name: &OsStr,
        map: Option<Result<Map, blkmap::Error>>,
        options: &OpenOptions,
        args: &Diff,
    ) -> Result<Self, Failed> {
        match map {
            Some(map) => Ok(Self::Map(Box::new(map.map_err(|error| of_map(&error))?))),
            None => {
                let data = Data::open(name, options, &args.source);
                let data = data.map_err(|reason| Failed { reason, is_changed: false })?;
                Ok(Self::Image(Box::new(data)))
            }
        }
    }

    fn end<'a>(&'a self, name: &'a OsStr) -> End<'a> {
        match self {
            Self::Map(map) => End::Map(map, name),
            Self::Image(data) => End::Image(data),
        }
    }

    /// Returns the size of the blocks of a map.
    fn block_size(&self) -> Option<BlockSize> {
        match self {
            Self::Map(map) => Some(map.header().block_size),
            Self::Image(_) => None,
        }
    }

    fn partitions(&self) -> Option<Vec<Partition>> {
        let found = match self {
            Self::Image(data) => partitions(data),
            Self::Map(map) => info::partitions(map),
        };
        (!found.is_empty()).then_some(found)
    }
}

/// Finds the blocks of a map that are compared with an image. Two maps must be of the same part of an image.
fn counterpart(
    left: &Input,
    right: &Input,
    names: [&OsString; 2],
    partition: Option<u32>,
) -> Result<Counterpart, Stopped> {
    let stopped = |side: usize, reason| (names[side].clone(), Failed { reason, is_changed: false });
    match (left, right) {
        (Input::Map(map), Input::Image(data)) => {
            Counterpart::find(map, data, partition).map_err(|reason| stopped(0, reason))
        }
        (Input::Image(data), Input::Map(map)) => {
            Counterpart::find(map, data, partition).map_err(|reason| stopped(1, reason))
        }
        (Input::Map(left), Input::Map(right))
            if left.commit().image_size != right.commit().image_size =>
        {
            match [left, right].map(|map| info::partition_of(map)) {
                [Some(one), Some(other)] if one.is_some() != other.is_some() => {
                    let (one, other) = (part_name(one), part_name(other));
                    let reason = format!("is the map of {one}, and {} of {other}", shown(names[1]));
                    Err(stopped(0, reason))
                }
                _ => Ok(Counterpart::All),
            }
        }
        _ => Ok(Counterpart::All),
    }
}

/// An image and the map that it is compared with.
struct Compared<'a> {
    map: &'a Map,
    map_name: &'a OsStr,
    side: Side,
    data: &'a Data,
    counterpart: Counterpart,
}

impl Compared<'_> {
    /// Compares the pages from the first one to the one behind the last, or those of a partition.
    fn run(
        &self,
        pages: (u64, u64),
        mut report: Report<'_>,
        reporter: &Reporter,
    ) -> Result<(), Stopped> {
        let Counterpart::Partition(partition) = self.counterpart else {
            return self.compare(self.data.source(), pages, report, reporter);
        };
        let mut clip = |first, count, kind| partition.clip(first, count, kind, &mut report);
        let pages = partition.pages(self.map);
        self.compare(&*self.data.image, pages, Report::new(&mut clip), reporter)?;
        report.end();
        Ok(())
    }

    fn compare(
        &self,
        image: &dyn Source,
        (first, end): (u64, u64),
        report: Report<'_>,
        reporter: &Reporter,
    ) -> Result<(), Stopped> {
        let Self { map, map_name, side, data, .. } = *self;
        let target = shown(map_name);
        // Zeros that the image does not store cost nothing.
        let compared = compare(map, side, image, first..end, report, |part, leaf, against| {
            data.block_digests(part, leaf, u64::MAX, against, &target, reporter)
        });
        compared.map_err(|stopped| match stopped {
            compare::Stopped::Image(error) => (data.name.clone(), data.failed(error.into())),
            compare::Stopped::Pass(failed) => (data.name.clone(), failed),
            compare::Stopped::Map(error) => (map_name.to_owned(), of_map(&error)),
        })
    }
}

/// A name, and the reason why it cannot be compared.
type Stopped = (OsString, Failed);

/// What is printed about a comparison.
struct Job<'a> {
    print: &'a args::Report,
    names: [&'a OsStr; 2],
    picture: PictureFile,
}

impl Job<'_> {
    /// Prints what `compare` finds.
    fn run(
        self,
        sizes: Sizes,
        partitions: Vec<Partition>,
        compare: impl FnOnce(Report<'_>) -> Result<(), Stopped>,
    ) -> Result<Outcome, Failure> {
        let [left_name, right_name] = self.names.map(ToOwned::to_owned);
        let labels = Labels { left: left_name, right: right_name, partitions };
        let mut differences = Differences::new(self.print, sizes, labels);
        let mut take = |first, count, kind| differences.push(first, count, kind);
        let compared = compare(Report::new(&mut take));
        let ended = differences.end(compared.is_ok())?;
        if let Some(svg) = ended.svg
            && let Err(reason) = self.picture.write(&svg)
        {
            messages::message(PROGRAM, &reason);
            return Ok(Outcome::Unknown);
        }
        Ok(match compared {
            Ok(()) => ended.outcome,
            Err((name, failure)) => failed(&name, &failure),
        })
    }
}

/// Passes the runs of a comparison of images on.
struct Runs<'a, 'r> {
    report: &'a mut Report<'r>,
    end: Option<ShortEnd>,
}

impl Sink<ComparedRun> for Runs<'_, '_> {
    fn take(&mut self, run: &ComparedRun) -> Result<(), SinkError> {
        for run in ShortEnd::whole(self.end, *run) {
            self.report.push(run.first_block, run.count, run.comparison);
        }
        Ok(())
    }
}

fn of_map(error: &blkmap::Error) -> Failed {
    Failed { reason: open::reason(error), is_changed: false }
}

/// Describes an error of a comparison of two maps, the second of which is `other`.
fn of_maps(error: &blkmap::Error, other: &OsStr) -> Failed {
    let reason = match error {
        blkmap::Error::Mismatch(reason) => format!("compared with {}: {reason}", shown(other)),
        error => open::reason(error),
    };
    Failed { reason, is_changed: false }
}

fn failed(name: &OsStr, failure: &Failed) -> Outcome {
    fail(name, &failure.reason);
    if failure.is_changed { Outcome::Useless } else { Outcome::Unknown }
}

/// Says that a map is of a partition, and is compared with something else, or the reverse.
fn note_other_part(name: &OsStr, map: &Map, given: Option<u32>) {
    let Some(partition) = info::partition_of(map) else { return };
    let given = given.map(u64::from);
    if partition == given {
        return;
    }
    let (of, with) = (part_name(partition), part_name(given));
    let note = format!("note: is the map of {of}, and compared with {with}");
    messages::remark_of(PROGRAM, name.as_encoded_bytes(), &note);
}

/// Says that a map is of a snapshot of the image, which is read in another state.
fn note_other_state(name: &OsStr, map: &Map, data: &Data, source: &SourceArgs) {
    let Some(of) = info::snapshot_of(map) else { return };
    let snapshots = data.image.snapshots().ok().flatten().unwrap_or_default();
    // A copy of the snapshot has none of this name, and is meant to be compared. An id takes precedence over a name.
    let find = |name: &str| {
        let by_id = snapshots.iter().position(|it| it.id == name.as_bytes());
        by_id.or_else(|| snapshots.iter().position(|it| it.name == name.as_bytes()))
    };
    let given = source.opening.snapshot.as_deref();
    let mapped = find(&of);
    if mapped.is_none() || given.and_then(find) == mapped {
        return;
    }
    let state = match given {
        Some(other) => format!("snapshot '{other}'"),
        None => "its current state".to_owned(),
    };
    let image = shown(&data.name);
    let note = format!("note: is the map of snapshot '{of}', and {image} is read in {state}");
    messages::remark_of(PROGRAM, name.as_encoded_bytes(), &note);
}

fn part_name(partition: Option<u64>) -> String {
    match partition {
        Some(number) => format!("partition {number}"),
        None => "the whole image".to_owned(),
    }
}

/// The salt is that of the map, and images need none.
fn refuse_salt(source: &SourceArgs) -> Result<(), Failure> {
    match source.salt {
        Some(_) => Err(Failure::Refused(refuse("--salt: a map has its own salt"))),
        None => Ok(()),
    }
}

/// Returns the first option that says what of an image is read.
fn image_option(source: &SourceArgs) -> Option<&'static str> {
    let SourceArgs { partition, opening, .. } = source;
    let options = [
        ("--partition", partition.is_some()),
        ("--snapshot", opening.snapshot.is_some()),
        ("--format", opening.format.is_some()),
        ("--backing-format", opening.backing_format.is_some()),
        ("--vpc-size", opening.vpc_size.is_some()),
        ("--secret-file", opening.secret_file.is_some()),
    ];
    options.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
}

/// Returns whether two names are those of one file, which then has the same content with the same options.
fn is_same_file(names: [&OsString; 2]) -> bool {
    let id = |name: &OsString| {
        let metadata = std::fs::metadata(name).ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    names[0] == names[1] || id(names[0]).is_some_and(|it| Some(it) == id(names[1]))
}

fn partitions(data: &Data) -> Vec<Partition> {
    partition::table(data.source()).unwrap_or_default().partitions
}

const SHARD_OF_PARTITION: &str = "--shard and --range: the map is that of the whole image: leave out --partition, or \
                                  use the map of the partition";
