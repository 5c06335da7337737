//! `blkhash map verify` and `blkhash map diff`: compare maps and images.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;

use blkhash::BlockSize;
use blkimage::partition::{self, Partition};
use blkimage::{OpenOption, OpenOptions};
use blkindex::Format;
use blkmap::{Map, Report, Side};
use blksum::map::{Info, Made, OtherPart, Pairing, check_parts};
use blksum::{Sides, Unreadable};

use super::args::{self, Diff, Verify};
use super::picture_file::PictureFile;
use super::relations::Labels;
use super::report::Differences;
use super::tail::{self, End};
use crate::blkhash::source::{Data, shown};
use crate::blkhash::source_args::SourceArgs;
use crate::image::contents::Contents;
use crate::map::open;
use crate::messages;
use crate::problem::{Failure, Outcome, Problem, WithName as _};
use crate::progress::Reporter;

/// Compares an image with its map.
pub fn verify(args: &Verify) -> Result<Outcome, Failure> {
    refuse_salt(&args.source)?;
    let key = open::key(args.key_file.as_deref()).map_err(Failure::usage)?;
    let picture =
        PictureFile::open(&args.output, &[&args.map, &args.image]).map_err(Failure::usage)?;
    let map = open::open(&args.map).and_then(|map| match &key {
        Some(key) => map.check_seal(key).map(|()| map),
        None => Ok(map),
    });
    let is_swapped =
        map.is_err() && (open::has_magic(&args.image) || Format::has_suffix(&args.image));
    let options = args.source.confine([&args.image])?;
    let map = map.map_err(|error| match is_swapped {
        true => Problem::from(error).with_hint("the map comes first: blkhash map verify MAP IMAGE"),
        false => Problem::from(error),
    });
    let map = map.named(&args.map)?;
    let reporter = Reporter::new(args.source.progress.when(), Some(1));
    reporter.begin(&args.image);
    let mut data = Data::open(&args.image, &options, &args.source).named(&args.image)?;
    if args.ignore_tail {
        data = data.without_tail(map.commit().image_size()).named(&args.image)?;
    }
    picture.check_apart(data.image()).map_err(Failure::usage)?;
    let pages = map.pages();
    let page = map.header().blocks_per_page().saturating_mul(map.header().block_size.into());
    let chosen = match (args.shard, args.range) {
        (Some(shard), _) => Some(shard.pages(pages)),
        (_, Some(range)) => {
            let size = map.commit().image_size();
            if range.from >= size {
                return Err(Failure::usage(format!(
                    "--range: the image of the map ends at {size}"
                )));
            }
            Some(range.pages(page, pages))
        }
        _ => None,
    };
    let pairing = Pairing::new(&map, &data.selected).map_err(|other| of_other_part(&other));
    let mut pairing = pairing.named(&args.map)?;
    if let Some((first, end)) = chosen {
        let part = pairing.with_pages(first..end);
        pairing = part.ok_or_else(|| Failure::usage(SHARD_OF_PARTITION))?;
    }
    if !pairing.is_in_map() {
        note_other_part(&args.map, pairing.info(), args.source.partition);
    }
    if !args.output.quiet {
        note_other_state(&args.map, pairing.info(), &data, &args.source);
    }
    let mut sides = pairing.sides();
    let reaches_end = chosen.is_none_or(|(_, end)| end == pages);
    if args.ignore_zero_tail && !pairing.is_in_map() && reaches_end {
        let ends = [End::Map(&map, &args.map), End::Image(&data)];
        sides.ignores_tail = tail::is_zero(ends, &reporter).named(&args.map)?;
    }
    let names = [args.map.as_os_str(), args.image.as_os_str()];
    let is_backup = pairing
        .info()
        .is_some_and(|info| info.made == Some(Made::Import(Format::Fidx.name().to_owned())));
    let if_all_differ = is_backup.then_some(ENCRYPTED);
    let ignores_free = args.ignore_free;
    let job = Job {
        print: &args.output,
        names,
        picture,
        if_all_differ,
        ignores_free,
        ignores_unknown: args.ignore_unknown,
        has_ranges: false,
    };
    let contents = Contents::of(vec![data.shared_source()]);
    let outcome = job.run(sides, partitions(&data), contents, |report| {
        compare(&pairing, [&args.map, &args.image], &data, report, &reporter)
    });
    reporter.end(&args.image, None);
    outcome
}

/// Compares two maps, two images, or a map and an image.
pub fn diff(args: &Diff) -> Result<Outcome, Failure> {
    refuse_salt(&args.source)?;
    let names = [&args.left, &args.right];
    let picture = PictureFile::open(&args.output, &names).map_err(Failure::usage)?;
    let are_maps = which_are_maps(args, names)?;
    let maps = [0, 1].map(|side| are_maps[side].then(|| open::open(names[side])));
    let images = [0, 1].into_iter().filter(|side| !are_maps[*side]).map(|side| names[side]);
    let options = args.source.confine(images)?;
    let count = are_maps.iter().filter(|is_map| !**is_map).count() as u64;
    let reporter = Reporter::new(args.source.progress.when(), Some(count));
    let [left, right] = maps;
    let open = |name, map| Input::open(name, map, &options, args);
    let left = open(names[0], left).named(names[0])?;
    let right = open(names[1], right).named(names[1])?;
    let right = match right {
        Input::Image(data) if args.ignore_tail => {
            let size = left.end(names[0]).size();
            Input::Image(Box::new(data.without_tail(size).named(names[1])?))
        }
        Input::Map(_) if args.ignore_tail => {
            return Err(Failure::usage("--ignore-tail: RIGHT is a map, and must be an image"));
        }
        right => right,
    };
    for data in [&left, &right].into_iter().filter_map(Input::image) {
        picture.check_apart(data.image()).map_err(Failure::usage)?;
    }
    let names_of_job = names.map(OsString::as_os_str);
    let job = Job {
        print: &args.output,
        names: names_of_job,
        picture,
        if_all_differ: None,
        ignores_free: args.ignore_free,
        ignores_unknown: false,
        has_ranges: false,
    };
    let ends = [left.end(names[0]), right.end(names[1])];
    let pair = Pair::new(&left, &right, names).named(names[0])?;
    let (mut sides, is_in_map) = match &pair {
        Pair::MapAndImage(pairing, ..) => (pairing.sides(), pairing.is_in_map()),
        _ => {
            let block_size = left.block_size().or(args.block_size).unwrap_or_default();
            (Sides::new(block_size, ends[0].size(), ends[1].size()), false)
        }
    };
    if args.ignore_zero_tail && !is_in_map {
        sides.ignores_tail = tail::is_zero(ends, &reporter).named(names[0])?;
    }
    let partitions_of = |side: &Input| match side {
        // The table is the disk's, and offsets are in the partition.
        Input::Map(_) if is_in_map => None,
        _ => side.partitions(),
    };
    let partitions = partitions_of(&right).or_else(|| partitions_of(&left)).unwrap_or_default();
    // The newer state is the one to look at, unless only the older one has a file system.
    let disks = [&right, &left].into_iter().filter_map(Input::image).map(Data::shared_source);
    let contents = Contents::of(disks.collect());
    match pair {
        Pair::MapAndImage(pairing, [map_name, image], data) => {
            if !args.output.quiet {
                note_other_state(map_name, pairing.info(), data, &args.source);
            }
            reporter.begin(image);
            let outcome = job.run(sides, partitions, contents, |report| {
                compare(&pairing, [map_name, image], data, report, &reporter)
            });
            reporter.end(image, None);
            outcome
        }
        Pair::Maps(left, right) => job.run(sides, partitions, contents, |report| {
            blkmap::diff(left, right, report)
                .map_err(|error| of_maps(&error, names[1]).about(names[0]))?;
            Ok(Vec::new())
        }),
        Pair::Images(left, right) => {
            reporter.begin(names[0]);
            let block_size = args.block_size.unwrap_or_default();
            let outcome = job.run(sides, partitions, contents, |mut report| {
                let compared = left.compare(right, block_size, &mut report, &reporter);
                report.end();
                compared.map_err(|problem| problem.about(names[0]))
            });
            reporter.end(names[0], None);
            outcome
        }
    }
}

/// Says which sides are maps, and refuses options that do not go with them.
fn which_are_maps(args: &Diff, names: [&OsString; 2]) -> Result<[bool; 2], Failure> {
    let has_format = args.source.opening.is_given(OpenOption::Format);
    let mut are_maps = [false; 2];
    for (name, is_map) in names.into_iter().zip(&mut are_maps) {
        *is_map = open::is_map(name, has_format).named(name)?;
    }
    if args.block_size.is_some() && are_maps != [false; 2] {
        return Err(Failure::usage("--block-size is for two images: a map has its own"));
    }
    if are_maps == [true; 2] && args.ignore_free {
        return Err(Failure::usage(
            "--ignore-free needs an image: a map does not record what is free",
        ));
    }
    if are_maps == [true; 2]
        && let Some(option) = args.source.of_content()
    {
        return Err(Failure::usage(format!(
            "{option} says what of an image is read, and both are maps: make maps with {option}, or leave it out"
        )));
    }
    if let Some(snapshot) = &args.source.opening.open.snapshot
        && are_maps == [false; 2]
        && is_same_file(names)
    {
        let (snapshot, name) = (shown(snapshot.as_ref()), shown(names[0]));
        return Err(Failure::usage(format!(
            "both are the same image with --snapshot {snapshot}: make a map of the snapshot with 'blkhash map create \
             --snapshot {snapshot} -o snapshot.blkmap {name}', then 'blkhash map diff snapshot.blkmap {name}'"
        )));
    }
    Ok(are_maps)
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
    ) -> Result<Self, Problem> {
        match map {
            Some(map) => Ok(Self::Map(Box::new(map?))),
            None => Ok(Self::Image(Box::new(Data::open(name, options, &args.source)?))),
        }
    }

    fn end<'a>(&'a self, name: &'a OsStr) -> End<'a> {
        match self {
            Self::Map(map) => End::Map(map, name),
            Self::Image(data) => End::Image(data),
        }
    }

    fn image(&self) -> Option<&Data> {
        match self {
            Self::Map(_) => None,
            Self::Image(data) => Some(data),
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
            Self::Map(map) => Info::of(map).map(|info| info.partitions()).unwrap_or_default(),
        };
        (!found.is_empty()).then_some(found)
    }
}

/// Both sides of a comparison.
enum Pair<'a> {
    /// The names are the map's and the image's.
    MapAndImage(Box<Pairing<'a>>, [&'a OsString; 2], &'a Data),
    Maps(&'a Map, &'a Map),
    Images(&'a Data, &'a Data),
}

impl<'a> Pair<'a> {
    /// Pairs two sides with these names. A map and an image, or two maps, must be of the same part of an image.
    fn new(
        left: &'a Input,
        right: &'a Input,
        [left_name, right_name]: [&'a OsString; 2],
    ) -> Result<Self, Problem> {
        let paired = |map, data: &'a Data, side, names: [&'a OsString; 2]| {
            let pairing = Pairing::new(map, &data.selected);
            let pairing = pairing.map_err(|other| of_other_part(&other).about(names[0]))?;
            Ok(Self::MapAndImage(Box::new(pairing.with_side(side)), names, data))
        };
        match (left, right) {
            (Input::Map(map), Input::Image(data)) => {
                paired(map, data, Side::Left, [left_name, right_name])
            }
            (Input::Image(data), Input::Map(map)) => {
                paired(map, data, Side::Right, [right_name, left_name])
            }
            (Input::Map(left), Input::Map(right)) => match check_parts(left, right) {
                Ok(()) => Ok(Self::Maps(left, right)),
                Err(OtherPart::Maps(one, other)) => {
                    let (one, other) = (part_name(one), part_name(other));
                    let reason =
                        format!("is the map of {one}, and {} of {other}", shown(right_name));
                    Err(Problem::new(reason).about(left_name))
                }
                Err(other) => Err(Problem::new(other.to_string()).about(left_name)),
            },
            (Input::Image(left), Input::Image(right)) => Ok(Self::Images(left, right)),
        }
    }
}

/// Compares an image with a map. The names are the map's and the image's.
pub fn compare(
    pairing: &Pairing<'_>,
    [map_name, image_name]: [&OsString; 2],
    data: &Data,
    report: Report<'_>,
    reporter: &Reporter,
) -> Result<Vec<Unreadable>, Problem> {
    let compared = data.watched(pairing.length(), reporter, |tuning, progress| {
        pairing.compare(report, tuning, progress)
    });
    compared.map_err(|error| match error {
        blksum::Error::Map(error) => Problem::from(error).about(map_name),
        error => data.failed(&error).about(image_name),
    })
}

/// The parts of a comparison that are printed.
pub struct Job<'a> {
    pub print: &'a args::Report,
    pub names: [&'a OsStr; 2],
    pub picture: PictureFile,
    /// What to say if no block is equal.
    pub if_all_differ: Option<&'static str>,
    pub ignores_free: bool,
    pub ignores_unknown: bool,
    /// Whether the left side has digests of ranges of blocks.
    pub has_ranges: bool,
}

impl Job<'_> {
    /// Prints what `compare` finds, with the partitions and files.
    pub fn run(
        self,
        sides: Sides,
        partitions: Vec<Partition>,
        contents: Contents,
        compare: impl FnOnce(Report<'_>) -> Result<Vec<Unreadable>, Problem>,
    ) -> Result<Outcome, Failure> {
        let [left_name, right_name] = self.names.map(ToOwned::to_owned);
        let labels = Labels { left: left_name, right: right_name, partitions };
        let differences = Differences::new(self.print, sides, labels).with_contents(contents);
        let differences = differences.with_remark_if_all_differ(self.if_all_differ);
        let differences = differences.with_free_space_ignored(self.ignores_free);
        let differences = differences.with_unknown_ignored(self.ignores_unknown);
        let mut differences = differences.with_ranges(self.has_ranges);
        let mut take = |first, count, kind| differences.push(first, count, kind);
        let compared = compare(Report::new(&mut take));
        end(differences, &self.picture, compared, self.names[0])
    }
}

/// Ends the output of a comparison, and writes its picture. A problem is about `name`, if it does not say.
pub fn end(
    differences: Differences,
    picture: &PictureFile,
    compared: Result<Vec<Unreadable>, Problem>,
    name: &OsStr,
) -> Result<Outcome, Failure> {
    let ended = differences.end(compared.as_deref().ok())?;
    if let Some(svg) = ended.svg
        && let Err(reason) = picture.write(&svg)
    {
        messages::message(&reason);
        return Ok(Outcome::Unknown);
    }
    Ok(match compared {
        Ok(_) => ended.outcome,
        Err(problem) => problem.report(name),
    })
}

/// Describes why a map is of another part than the image, and what to do.
pub fn of_other_part(other: &OtherPart) -> Problem {
    let advice = match other {
        OtherPart::Partition(number) => format!("add --partition {number}"),
        _ => "compare without --partition, or with the map of the partition".to_owned(),
    };
    Problem::new(other.to_string()).with_hint(advice)
}

/// Describes an error of a comparison of two maps, the second of which is `other`.
pub fn of_maps(error: &blkmap::Error, other: &OsStr) -> Problem {
    match error {
        blkmap::Error::Mismatch(reason) => {
            Problem::new(format!("compared with {}: {reason}", shown(other)))
        }
        error => error.into(),
    }
}

/// Says that a map is of a partition, and is compared with something else, or the reverse.
fn note_other_part(name: &OsStr, info: Option<&Info>, given: Option<u32>) {
    let Some(partition) = info.and_then(Info::partition) else { return };
    if partition == given {
        return;
    }
    let (of, with) = (part_name(partition), part_name(given));
    let note = format!("note: is the map of {of}, and compared with {with}");
    messages::remark_of(name.as_encoded_bytes(), &note);
}

/// Says that a map is of a snapshot of the image, which is read in another state.
fn note_other_state(name: &OsStr, info: Option<&Info>, data: &Data, source: &SourceArgs) {
    let mapped = info.and_then(|info| info.source.as_ref());
    let Some(of) = mapped.and_then(|source| source.snapshot.as_deref()) else { return };
    let snapshots = data.image().snapshots().ok().flatten().unwrap_or_default();
    // A copy of the snapshot has none of this name, and is meant to be compared. An id takes precedence over a name.
    let find = |name: &str| {
        let by_id = snapshots.iter().position(|it| it.id == name.as_bytes());
        by_id.or_else(|| snapshots.iter().position(|it| it.name == name.as_bytes()))
    };
    let given = source.opening.open.snapshot.as_deref();
    let mapped = find(of);
    if mapped.is_none() || given.and_then(find) == mapped {
        return;
    }
    let state = match given {
        Some(other) => format!("snapshot '{other}'"),
        None => "its current state".to_owned(),
    };
    let image = shown(&data.name);
    let note = format!("note: is the map of snapshot '{of}', and {image} is read in {state}");
    messages::remark_of(name.as_encoded_bytes(), &note);
}

fn part_name(partition: Option<u32>) -> String {
    match partition {
        Some(number) => format!("partition {number}"),
        None => "the whole image".to_owned(),
    }
}

/// The salt is the map's, and images need none.
pub fn refuse_salt(source: &SourceArgs) -> Result<(), Failure> {
    match source.salt {
        Some(_) => Err(Failure::usage("--salt: a map has its own salt")),
        None => Ok(()),
    }
}

/// Returns whether two names refer to one file, which then has the same content with the same options.
fn is_same_file(names: [&OsString; 2]) -> bool {
    let id = |name: &OsString| {
        let metadata = std::fs::metadata(name).ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    names[0] == names[1] || id(names[0]).is_some_and(|it| Some(it) == id(names[1]))
}

pub fn partitions(data: &Data) -> Vec<Partition> {
    partition::table(data.source()).unwrap_or_default().partitions
}

const SHARD_OF_PARTITION: &str = "--shard and --range: the map is of the whole image: leave out --partition, or \
                                  use the map of the partition";

const ENCRYPTED: &str = "note: no block is equal: an encrypted backup of Proxmox hashes a key with each chunk, and its \
                         .fidx does not say so";
