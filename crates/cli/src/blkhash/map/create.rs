//! `blkhash map create`: makes the map of an image.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use blkhash::{Algorithm, Construction};
use blkimage::{Location, container_of};
use blkmap::{Commit, Header, Key, Recovered, Writer};
use blksum::map::{Info, Made, Sample, Subject};
use blksum::{Progress, Tuning};

use super::args::Create;
use super::checksum;
use super::part::{self, Shard};
use crate::blkhash::source::Data;
use crate::map::output::{Content, Output};
use crate::map::{self, open};
use crate::messages;
use crate::outputs::{Named, mode_of_images};
use crate::problem::{Failure, Outcome, Problem, WithName as _};
use crate::progress::Reporter;

/// Makes the map of the image on the command line.
pub fn run(args: &Create) -> Result<Outcome, Failure> {
    let name = output_name(args).map_err(Failure::usage)?;
    if name == "-" && (args.resume || args.if_changed || !args.checksum.is_empty()) {
        return Err(Failure::usage("--resume, --if-changed and --checksum need a map in a file"));
    }
    if args.resume && args.no_source {
        return Err(Failure::usage("--resume needs to know the image: leave out --no-source"));
    }
    if name == "-" && std::io::stdout().is_terminal() {
        return Err(Failure::usage("a map is not written to a terminal"));
    }
    let key = open::key(args.key_file.as_deref()).map_err(Failure::usage)?;
    if args.image == "-" {
        return Err(Failure::usage("cannot create a map of standard input"));
    }
    if args.checksum.contains(&Construction::Linear) {
        return Err(Failure::usage("--checksum: maps need blocks, and linear has none"));
    }
    // No empty map remains for an image that does not exist.
    if let Location::Path(path) = Location::new(&args.image) {
        let path = container_of(path).unwrap_or(path);
        let metadata = std::fs::metadata(path).named(&args.image)?;
        if args.output.is_none() && metadata.file_type().is_block_device() {
            return Err(Failure::usage("-o FILE says where the map of a device goes"));
        }
    }
    let named = match args.output {
        Some(_) => Named::ByUser,
        None => Named::AfterImage(Path::new(&args.image)),
    };
    let output = Output::open(&name, named, mode_of_images([&*args.image]));
    let options = args.source.confine([&args.image])?;
    let output = output.named(&name)?;
    let reporter = Reporter::new(args.source.progress.when(), Some(1));
    reporter.begin(&args.image);
    let made = Data::open(&args.image, &options, &args.source)
        .map_err(|problem| problem.about(&args.image))
        .and_then(|data| make(args, &data, &output, key, &reporter));
    reporter.end(&args.image, None);
    drop(reporter);
    made.named(&name)?;
    print_checksums(args, &name, output)
}

/// The output, and the image that it describes.
struct Job<'a> {
    args: &'a Create,
    data: &'a Data,
    pages: Range<u64>,
    key: Option<Key>,
    info: Info,
}

fn make(
    args: &Create,
    data: &Data,
    output: &Output,
    key: Option<Key>,
    reporter: &Reporter,
) -> Result<(), Problem> {
    output.check_apart(data.image())?;
    let mut header = Header::new(
        args.digest.unwrap_or(Algorithm::Sha256),
        args.block_size.unwrap_or_default(),
        args.source.salt.unwrap_or_default(),
    )
    .map_err(|error| Problem::from(&error))?;
    let info = info_of(args, data);
    let continued = match output.content()? {
        Content::Empty => None,
        Content::Map(map) => match decide(args, &map, &header, data, &info, key.as_ref())? {
            Next::Nothing => {
                check_same(args, &map, data, &info)?;
                return Ok(map.cut().map(drop)?);
            }
            Next::Over => None,
            Next::Continue => {
                check_same(args, &map, data, &info)?;
                Some(map)
            }
        },
    };
    if let Some(map) = &continued {
        header = *map.header();
    }
    let pages = data.size().div_ceil(header.block_size.into()).div_ceil(header.blocks_per_page());
    let (first, end) = args.shard.map_or((0, pages), |shard| shard.pages(pages));
    let job = Job { args, data, pages: first..end, key, info };
    match continued {
        None => job.write(output.begin(header, data.size())?, reporter),
        Some(map) => {
            if map.commit().is_some() && !job.info.shows_changes() {
                let note = "note: continues, although nothing shows that this is the same image: devices and servers \
                            do not say when they change";
                messages::remark_of(args.image.as_bytes(), note);
            }
            let writer = map.continued(data.size());
            let writer = writer.map_err(|error| Problem::from(error).with_hint(ANEW))?;
            job.write(writer, reporter)
        }
    }
}

/// Compares a sample of the blocks of a map that is gone on with, where nothing else tells that the image is the same. A part of an image has no blocks at its start.
fn check_same(args: &Create, map: &Recovered, data: &Data, info: &Info) -> Result<(), Problem> {
    if args.shard.is_some() || info.shows_changes() {
        return Ok(());
    }
    let blocks = data.size().div_ceil(map.header().block_size.into());
    let (tuning, progress) = (Tuning::default(), Progress::new());
    let sample = Sample::of_same(blocks);
    match blksum::map::first_unlike(map, data.source(), sample, &tuning, &progress) {
        Ok(None) => Ok(()),
        Ok(Some(at)) => {
            let length = at.end - at.start;
            let reason =
                format!("is not the map of the image: {length} bytes at {} differ", at.start);
            Err(Problem::new(reason).with_hint(ANEW).with_outcome(Outcome::Useless))
        }
        Err(blksum::Error::Map(error)) => Err(error.into()),
        Err(error) => Err(data.failed(&error)),
    }
}

impl Job<'_> {
    fn write<O: blkmap::Output + Send>(
        self,
        writer: Writer<O>,
        reporter: &Reporter,
    ) -> Result<(), Problem>
    where
        Writer<O>: Send,
    {
        let time = self.args.checkpoint.unwrap_or(blkmap::CHECKPOINT);
        let writer = writer.sealed_with(self.key).checkpoint_every(time, self.info.to_string());
        let (source, total) = (self.data.source(), self.data.size());
        let written = self.data.watched(total, reporter, |tuning, progress| {
            blksum::map::write(writer, source, self.pages, &self.info, tuning, progress)
        });
        written.map(drop).map_err(|error| match error {
            blksum::Error::Map(error) => error.into(),
            error => self.data.failed(&error),
        })
    }
}

/// Differences between an existing map and the one to make.
enum Differs {
    /// It is made in another way, or of something else.
    Made(&'static str),
    /// It is of another state of the image.
    Content(&'static str),
}

/// The treatment of an existing map.
enum Next {
    /// It is what would be made.
    Nothing,
    /// It is continued.
    Continue,
    /// It is made anew.
    Over,
}

fn decide(
    args: &Create,
    map: &Recovered,
    header: &Header,
    data: &Data,
    info: &Info,
    key: Option<&Key>,
) -> Result<Next, Problem> {
    // Without a checkpoint there is nothing to continue.
    if map.commit().is_none() {
        return Ok(Next::Over);
    }
    // A seal over pages of unknown origin would make them genuine.
    let is_sealed = key.is_none_or(|key| map.check_seals(key).is_ok());
    let is_finished = map.commit().is_some_and(Commit::is_final);
    let old = map.info()?.and_then(|text| Info::parse(&text)).unwrap_or_default();
    let other = |map: &Header| {
        map.algorithm != header.algorithm
            || map.block_size != header.block_size
            || map.salt != header.salt
    };
    let place = |info: &Info| {
        let source = info.source.clone().unwrap_or_default();
        // A file may have another name, but it is known by its inode.
        let has_name = !(args.resume && info.shows_changes());
        (has_name.then_some(source.name), source.snapshot, source.partition)
    };
    let differs = if other(map.header()) {
        Some(Differs::Made("has another digest, block size or salt"))
    } else if !is_sealed {
        Some(Differs::Made("is not sealed with this key"))
    } else if map.commit().is_some() && old.shard != info.shard {
        Some(Differs::Made("is the map of another part of the image"))
    } else if map.commit().is_some() && !args.no_source && place(&old) != place(info) {
        Some(Differs::Made("is the map of another image, snapshot or partition"))
    } else if map.commit().is_some_and(|commit| commit.image_size() != data.size())
        || (map.commit().is_some() && !old.is_same_image(info))
    {
        Some(Differs::Content("is not the map of the image as it is now"))
    } else {
        None
    };
    // The image, its snapshots and its partitions share one default name.
    let is_part = args.source.partition.is_some() || args.source.opening.open.snapshot.is_some();
    let is_other = is_part || matches!(differs, Some(Differs::Made(_)));
    let another = if args.output.is_none() && is_other { "-o FILE names another, " } else { "" };
    match (is_finished, differs) {
        (true, None) if args.resume => Ok(Next::Nothing),
        (true, None) if args.if_changed && info.shows_changes() => Ok(Next::Nothing),
        (true, Some(Differs::Made(reason))) if args.if_changed && !args.force => {
            Err(Problem::new(reason).with_hint(format!("{another}{ANEW}")))
        }
        (true, _) if args.if_changed => Ok(Next::Over),
        (false, None) if args.resume => Ok(Next::Continue),
        _ if args.force => Ok(Next::Over),
        (_, Some(Differs::Made(reason) | Differs::Content(reason))) if args.resume => {
            let problem = Problem::new(reason).with_hint(format!("{another}{ANEW}"));
            Err(problem.with_outcome(Outcome::Useless))
        }
        (true, _) => {
            Err(Problem::new("exists").with_hint(format!("{another}--force overwrites it")))
        }
        (false, _) => Err(Problem::new("is not finished")
            .with_hint("--resume continues it, --force overwrites it")),
    }
}

/// Describes the image and what is made of it.
fn info_of(args: &Create, data: &Data) -> Info {
    let mut info = Info::new(Made::Read);
    info.shard = args.shard.map(|Shard { number, count }| [number, count]);
    if args.no_source {
        return info;
    }
    info.describe(&Subject {
        name: &data.name,
        image: data.image(),
        source: data.source(),
        snapshot: args.source.opening.open.snapshot.as_deref(),
        partition: args.source.partition,
    })
}

/// Returns the name of the map.
fn output_name(args: &Create) -> Result<OsString, String> {
    let Some(name) = &args.output else {
        let name = match Location::new(&args.image).is_uri() {
            true => map::name_of_url(&args.image),
            false => Some(map::path_of(&args.image).into_os_string()),
        };
        let mut name = name.ok_or("-o FILE says where the map of a URI goes")?;
        if let Some(shard) = args.shard {
            name.push(".");
            name.push(shard.file_name());
        }
        name.push(".blkmap");
        return Ok(name);
    };
    match args.shard {
        Some(shard) => Ok(shard.fill(name)),
        None if part::has_place(name) => Err("{shard} in the name needs --shard".to_owned()),
        None => Ok(name.clone()),
    }
}

fn print_checksums(args: &Create, name: &OsStr, output: Output) -> Result<Outcome, Failure> {
    if args.checksum.is_empty() {
        return Ok(Outcome::Clean);
    }
    let Output::File { file, .. } = output else { return Ok(Outcome::Clean) };
    let map = blkmap::Map::open(file).named(name)?;
    for construction in &args.checksum {
        let tag = args.checksum.len() > 1;
        checksum::print(&checksum::line(&map, &args.image, *construction, tag).named(name)?)?;
    }
    Ok(Outcome::Clean)
}

const ANEW: &str = "--force makes it anew";
