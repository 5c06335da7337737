//! `blkhash map update`: brings a map up to date by reading only what changed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write as _};

use blkimage::OpenOptions;
use blkmap::{Key, Map};
use blkrecord::Name;
use blksum::map::{Info, Made, Subject, Tracked, Updated};

use super::args::Update;
use super::tracker::{Base, Opened};
use crate::blkhash::source::{Data, shown};
use crate::json::{self, hex};
use crate::map::open;
use crate::map::output::{Content, Output, last_state};
use crate::outputs::{Named, mode_of_images};
use crate::problem::{Failure, Outcome, Problem, WithName as _};
use crate::progress::Reporter;
use crate::records;
use crate::size::Bytes;
use crate::stdio::Stdout;

/// Updates the map on the command line.
pub fn run(args: &Update) -> Result<Outcome, Failure> {
    super::compare::refuse_salt(&args.source)?;
    if args.source.opening.open.snapshot.is_some()
        && (args.tracker.bitmap.is_some() || args.tracker.overlay)
    {
        return Err(Failure::usage(
            "--snapshot: bitmaps and overlays tell changes of the current state",
        ));
    }
    if args.output.as_deref() == Some(OsStr::new("-")) {
        return Err(Failure::usage("-o: an updated map is written to a file"));
    }
    let key = open::key(args.key_file.as_deref()).map_err(Failure::usage)?;
    let tracker = Opened::open(&args.tracker)?;
    let place = Place::open(args);
    let names = [&args.image].into_iter().chain(&args.tracker.reflink);
    let options = tracker.options(args.source.confine(names)?);
    let place = place.named(&args.map)?;
    let reporter = Reporter::new(args.source.progress.when(), Some(1));
    reporter.begin(&args.image);
    let updated = Data::open(&args.image, &options, &args.source)
        .map_err(|problem| problem.about(&args.image))
        .and_then(|data| update(args, tracker, &options, &place, &data, key, &reporter));
    reporter.end(&args.image, None);
    drop(reporter);
    print(args, &updated.named(&args.map)?)?;
    Ok(Outcome::Clean)
}

/// The map to update, and where its next state goes.
enum Place {
    /// To the end of the map, which is locked.
    Append(File),
    Copy(Box<Map>, Output),
}

impl Place {
    fn open(args: &Update) -> Result<Self, Problem> {
        let Some(name) = &args.output else {
            return Ok(Self::Append(Output::open_map(&args.map)?));
        };
        let map = open::open(&args.map)?;
        let output = Output::open(name, Named::ByUser, mode_of_images([&*args.map]));
        let output = output.map_err(|problem| problem.about(name))?;
        if output.is_file(&args.map) {
            return Err(Problem::new("is the map to update: leave out -o").about(name));
        }
        match output.content().map_err(|problem| problem.about(name))? {
            Content::Map(_) if !args.force => {
                let problem = Problem::new("exists").with_hint("--force overwrites it");
                Err(problem.about(name))
            }
            _ => Ok(Self::Copy(Box::new(map), output)),
        }
    }
}

fn update(
    args: &Update,
    tracker: Opened<'_>,
    options: &OpenOptions,
    place: &Place,
    data: &Data,
    key: Option<Key>,
    reporter: &Reporter,
) -> Result<Updated, Problem> {
    let appended;
    let map = match place {
        Place::Append(file) => {
            appended = last_state(file, &args.map)?;
            &appended
        }
        Place::Copy(map, output) => {
            output.check_apart(data.image())?;
            map
        }
    };
    let subject = Subject {
        name: &data.name,
        image: data.image(),
        source: data.source(),
        snapshot: args.source.opening.open.snapshot.as_deref(),
        partition: args.source.partition,
    };
    let old = Info::of(map);
    let base = Base { info: old.as_ref(), subject };
    let by = tracker.name();
    let open = |name: &OsStr| Data::open(name, options, &args.source);
    let changes = tracker.changes(data, (!args.trust).then_some(&base), &open)?;
    let mut info = Info::new(Made::Read);
    if !args.no_source {
        info = info.describe(&subject);
    }
    let sample = args.sample.unwrap_or_default();
    let tracked = Tracked { changes: &changes, by: &by, sample };
    let failed = |error| match error {
        blksum::Error::Map(error) => error.into(),
        error @ blksum::Error::Missed { .. } => {
            let problem = Problem::new(error.to_string()).with_outcome(Outcome::Errors);
            problem.about(&data.name).with_hint("blkhash map audit finds all of them")
        }
        error => data.failed(&error),
    };
    let size = data.size();
    let total = changes.bytes();
    let updated = match place {
        Place::Append(file) => {
            let mut output = file.try_clone().map_err(|error| Problem::from(&error))?;
            let end = output.seek(SeekFrom::End(0)).map_err(|error| Problem::from(&error))?;
            let next = blkmap::Update::append(map, output, size, key)?;
            let updated = data.watched(total, reporter, |tuning, progress| {
                blksum::map::update(next, map, data.source(), &tracked, info, tuning, progress)
            });
            updated.inspect_err(|_| drop(file.set_len(end)))
        }
        Place::Copy(_, output) => {
            let next = blkmap::Update::copy(map, output.target()?, size, key)?;
            data.watched(total, reporter, |tuning, progress| {
                blksum::map::update(next, map, data.source(), &tracked, info, tuning, progress)
            })
        }
    };
    updated.map_err(failed)
}

/// Says what was read.
fn print(args: &Update, updated: &Updated) -> std::io::Result<()> {
    let commit = &updated.commit;
    let text = match () {
        () if args.quiet => return Ok(()),
        () if args.json => json::line(&records::map::Update {
            r#type: "update",
            name: Name::new(args.output.as_ref().unwrap_or(&args.map)),
            blocks: commit.blocks(),
            read: updated.read,
            bytes: updated.bytes,
            sampled: updated.sampled,
            // Only a whole map is updated.
            root: commit.root().map_or_else(String::new, |root| hex(&root)),
            commit: commit.sequence(),
        }),
        () => {
            format!(
                "{}: {} of {} blocks read, {}, and {} of the {} others for comparison\n",
                shown(args.output.as_ref().unwrap_or(&args.map)),
                updated.read,
                commit.blocks(),
                Bytes(updated.bytes),
                updated.sampled,
                commit.blocks() - updated.read,
            )
        }
    };
    Stdout.write_all(text.as_bytes())
}
