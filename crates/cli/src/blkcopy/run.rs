//! Copies the image on the command line.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Instant;

use blkcopy::{Copied, Destination, Error, ExpectedMap, Sent, What, Written};
use blkhash::{Construction, Digest, Parameters};
use blkimage::{Image, Location, OpenOptions, Source};
use blkmap::Map;
use blksum::changes::Changes;
use blksum::map::Subject;
use blksum::{Progress, Selected, Tuning};

use super::args::{Args, Reflink, Verification};
use super::checksum::Wanted;
use super::delta;
use super::expect_map;
use super::interrupt::{Held, Interrupted};
use super::log;
use super::output::{self, Report};
use super::passes::Passes;
use super::place::{self, Kept, Place};
use super::replaced::Replaced;
use super::sought::{self, Match, Sought};
use super::source::{self, Bytes, Opened};
use crate::image::advice;
use crate::map::change_list::ChangeList;
use crate::map::output::Output;
use crate::messages;
use crate::outputs::{Named, mode_of_images};
use crate::problem::{Failure, Outcome, Problem};
use crate::progress::Reporter;
use crate::size;
use crate::stdio::{self, Stdout};

/// Copies the image, and prints the result.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let job = Job::new(args)?;
    let base = args.delta_from.as_deref().or(args.destination_map.as_deref()).map(delta::base);
    let expected = expect_map::open(args);
    let list = args.changes.as_ref().map(|name| ChangeList::open(name, args.changes_format));
    let list = list.transpose()?;
    // A file that is created is never left or removed without a word. A server may take long to answer.
    let is_file = args.destination != "-" && !Location::new(&args.destination).is_uri();
    let held = is_file.then(Held::new);
    let place = place::open(args);
    let map = args.map.as_ref().map(|name| {
        let opened = Output::open(name.as_os_str(), Named::ByUser, mode_of_images([&*args.source]));
        opened.map_err(|problem| problem.about(name.as_os_str()))
    });
    let destination = Some(&args.destination).filter(|name| **name != "-");
    let names = [&args.source].into_iter().chain(destination);
    // What is written to standard output is not lost.
    let held = destination.and(held.or_else(|| Some(Held::new())));
    let mut options = args.opening.confine(names)?;
    if let Some(held) = held {
        let leftover = place.as_ref().ok().and_then(Option::as_ref).map(Place::leftover);
        let log = map.as_ref().and_then(|map| map.as_ref().ok()).and_then(Output::watched);
        let name = args.destination.clone();
        held.explain(Interrupted {
            name,
            leftover,
            has_map: args.map.is_some(),
            log,
            quiet: args.quiet,
        });
    }
    if let Some(name) = &args.bitmap {
        options.nbd = options.nbd.bitmap(name.clone());
    }
    let opened =
        place.and_then(|place| Ok((place, base.transpose()?, expected?, map.transpose()?)));
    let reporter = Reporter::new(args.progress.unwrap_or_default(), Some(1));
    reporter.begin(&args.source);
    let copied = opened.and_then(|(place, base, expected, map)| {
        let files = Files { base, list, map };
        let job = Job { expected_map: expected, ..job };
        job.copy(place, files, &options, &reporter)
    });
    reporter.end(&args.source, None);
    drop(reporter);
    match copied {
        Ok(report) => {
            report.print(args)?;
            Ok(Outcome::Clean)
        }
        Err(problem) => {
            output::print_failure(args, &problem)?;
            Ok(problem.report(&args.destination))
        }
    }
}

/// The maps and lists on the command line.
struct Files<'a> {
    /// What the destination or the receiver of a delta has.
    base: Option<Map>,
    /// What is copied.
    list: Option<ChangeList<'a>>,
    /// What is written.
    map: Option<Output>,
}

struct Job<'a> {
    args: &'a Args,
    wanted: Option<Wanted>,
    /// Parameters of the checksums that are computed in each pass. The first is the one to print, and to write a map of.
    parameters: Vec<Parameters>,
    verification: Verification,
    /// What the destination should hold.
    expected_map: Option<ExpectedMap>,
    tuning: Tuning,
}

impl<'a> Job<'a> {
    /// Checks that the options go together.
    fn new(args: &'a Args) -> Result<Self, Failure> {
        let to_stdout = args.destination == "-";
        let default = if to_stdout { Verification::Source } else { Verification::ReadBack };
        let verification = args.verify.unwrap_or(default);
        if to_stdout {
            let options = [
                ("--update", args.update),
                ("--map", args.map.is_some()),
                ("--destination-map", args.destination_map.is_some()),
                ("--bitmap", args.bitmap.is_some()),
                ("--changes", args.changes.is_some()),
                ("--expect-map", args.expect_map.is_some()),
                ("--verify=readback", verification == Verification::ReadBack),
            ];
            if let Some((option, _)) = options.into_iter().find(|(_, is_given)| *is_given) {
                return Err(Failure::usage(format!(
                    "{option}: standard output cannot be read again"
                )));
            }
            if args.zeros.is_some() {
                return Err(Failure::usage("--zeros: all bytes are written to standard output"));
            }
        }
        if args.source == "-" && args.changes.as_deref().is_some_and(|name| name == "-") {
            return Err(Failure::usage("--changes: standard input is the source"));
        }
        let wants_checksum = args.expect.is_some() || args.map.is_some() || args.tag;
        if verification == Verification::None && wants_checksum {
            return Err(Failure::usage(
                "--verify=none: --expect, --map and --tag need the checksum",
            ));
        }
        let has_none = verification == Verification::Source && (args.is_partial() || args.apply);
        if has_none && (args.expect.is_some() || args.tag) {
            return Err(Failure::usage(
                "--verify=source: not all is read, so there is no checksum for --expect and --tag",
            ));
        }
        if verification != Verification::ReadBack && args.expect_map.is_some() {
            return Err(Failure::usage(
                "--expect-map: compares what is read back: leave out --verify",
            ));
        }
        delta::check(args, verification).map_err(Failure::usage)?;
        let has_own = verification != Verification::None && !has_none;
        let wanted = has_own.then(|| Wanted::new(args)).transpose().map_err(Failure::usage)?;
        if args.map.as_deref() == Some(Path::new("-")) {
            return Err(Failure::usage("--map: a map is written to a file"));
        }
        // A name that leads to the same file is found to be locked.
        let is_destination = |map: &Path| !to_stdout && map.as_os_str() == args.destination;
        if args.map.as_deref().is_some_and(is_destination) {
            return Err(Failure::usage("--map: is the destination"));
        }
        if args.resume && args.construction == Some(Construction::Linear) {
            return Err(Failure::usage(
                "--resume: linear cannot be continued, as it has no blocks",
            ));
        }
        let defaults = Tuning::default();
        let threads = args.threads.map_or(defaults.threads, usize::from);
        let tuning = defaults.with_threads(threads).with_max_zeros(args.opening.open.max_zeros);
        let is_part = args.is_partial() || args.apply;
        let parameters = match &wanted {
            None => Vec::new(),
            Some(Wanted { sought: Some(sought), parameters, .. }) if args.delta_from.is_none() => {
                sought.likely(*parameters, is_part)
            }
            Some(wanted) => vec![wanted.parameters],
        };
        Ok(Self { args, wanted, parameters, verification, expected_map: None, tuning })
    }

    fn copy(
        &self,
        place: Option<Place>,
        files: Files<'_>,
        options: &OpenOptions,
        reporter: &Reporter,
    ) -> Result<Report, Problem> {
        let (args, started) = (self.args, Instant::now());
        let of_source = |problem: Problem| problem.about(&args.source);
        let bytes = self.sought().and_then(|_| Bytes::open(args, options));
        let mut opened = source::open(args, options).map_err(of_source)?;
        let bytes = bytes.and_then(|bytes| bytes.of(args, &opened));
        let expected = self.expected_map.as_ref();
        let compared = expected.map_or(0, ExpectedMap::bytes);
        let passes = Passes::new(self.verification == Verification::ReadBack, compared);
        if let Some(size) = opened.size() {
            let checked = expected.map_or(Ok(()), |map| map.check_size(size));
            checked.map_err(|error| expect_map::problem(args, &error))?;
            passes.expect(size, size);
        }
        let watch = passes.watch(reporter);
        let source = match &opened {
            Opened::Image(image, _) => Some(&**image),
            Opened::Stream(..) | Opened::Delta(_) => None,
        };
        let ready = place.map(|place| place.ready(args, source, options)).transpose()?;
        let (destination, kept) = ready.unzip();
        let format = source.map_or("raw", |image| image.format().name());
        let (bytes, kept_here) = (bytes.as_ref(), kept.as_ref());
        let done = match destination {
            None => self.send(&opened, files.base.as_ref(), &passes),
            Some(destination) => {
                self.write(&mut opened, destination, files, kept_here, bytes, &passes)
            }
        };
        drop(watch);
        let Done { copied: done, parameters, sent, found } = done?;
        if let Some(size) = done.destination_size.filter(|size| *size > done.size && !args.quiet) {
            let note =
                format!("note: has {size} bytes: the checksum covers the first {}", done.size);
            messages::remark_of(args.destination.as_encoded_bytes(), &note);
        }
        let found = match found {
            None => self.judge(&done, &parameters, &self.content(&opened), bytes)?,
            found => found,
        };
        self.note_update(&done, kept.as_ref());
        kept.map_or(Ok(()), |kept| kept.keep(args))?;
        if found.as_ref().is_some_and(|found| found.is_of_bytes) && !args.quiet {
            messages::remark_of(args.source.as_encoded_bytes(), OF_BYTES);
        }
        let replaced = Replaced::of(args, &done, &opened);
        Ok(Report {
            replaced,
            size: done.size,
            format,
            checksum: found.map(|found| found.checksum),
            amounts: done.amounts,
            sent,
            verification: self.verification,
            read_back: done.read_back,
            compared: expected.map(ExpectedMap::bytes),
            elapsed: started.elapsed(),
        })
    }

    /// Says how much an update replaced, if that is more than an older copy of the source would differ by.
    fn note_update(&self, done: &Copied, kept: Option<&Kept>) {
        let args = self.args;
        let had_content = kept.is_some_and(|kept| !kept.leftover.is_new());
        let Some(amounts) = done.amounts.filter(|_| args.update && had_content && !args.quiet)
        else {
            return;
        };
        let replaced = amounts.written.saturating_add(amounts.zeroed);
        if replaced > done.size / MAX_REPLACED {
            let (replaced, size) = (size::Bytes(replaced), size::Bytes(done.size));
            let note = format!(
                "note: {replaced} of {size} were other than in the source and were overwritten: was it a copy of it?"
            );
            messages::remark_of(args.destination.as_encoded_bytes(), &note);
        }
    }

    /// Copies to standard output.
    fn send(&self, opened: &Opened, base: Option<&Map>, passes: &Passes) -> Result<Done, Problem> {
        let (image, selected) = match opened {
            Opened::Image(image, selected) => (image, selected),
            Opened::Delta(_) => {
                return Err(Problem::new("a delta cannot be applied to a pipe"));
            }
            Opened::Stream(..) => {
                return Err(Problem::new("is a pipe, and so is the source")
                    .with_hint("tee and blksum copy and check a stream"));
            }
        };
        place::check_stdout(self.args, image)?;
        let (source, progress) = (selected.source(), &passes.writing);
        let (Some(base), Some(parameters)) = (base, self.parameters.first()) else {
            let copied = self.to_stdout(source, progress)?;
            return Ok(Done::new(copied, &self.parameters));
        };
        let expected = self.expected();
        let sent = delta::send(base, source, parameters, expected, &self.tuning, progress);
        let sent = sent.map_err(|error| self.problem(&error))?;
        let done = Done::new(sent.copied.clone(), &self.parameters);
        Ok(Done { sent: Some(sent), ..done })
    }

    /// Copies to a file, a device or a server.
    fn write(
        &self,
        opened: &mut Opened,
        destination: Box<dyn Destination>,
        files: Files<'_>,
        kept: Option<&Kept>,
        bytes: Option<&Bytes>,
        passes: &Passes,
    ) -> Result<Done, Problem> {
        let (args, Passes { writing, reading, .. }) = (self.args, passes);
        match opened {
            Opened::Image(image, selected) => {
                let subject = Subject {
                    name: &args.source,
                    image,
                    source: selected.source(),
                    snapshot: args.opening.open.snapshot.as_deref(),
                    partition: args.partition,
                };
                let only = self.only(image, selected, files.list)?;
                match files.map.as_ref().zip(kept) {
                    Some((map, kept)) => {
                        let judge = |written: &Copied| {
                            let content = sought::Copied::Image(selected);
                            self.judge(written, &self.parameters, &content, bytes)
                        };
                        self.with_log(&subject, destination, map, kept, passes, &judge)
                    }
                    None => {
                        let what = match (&files.base, &only) {
                            (Some(base), _) => What::Differing(base),
                            (None, Some(only)) => What::Only(only),
                            (None, None) => What::All,
                        };
                        self.to_destination(&subject, destination, what, passes)
                    }
                }
            }
            Opened::Stream(stream, _) => {
                let parameters = self.of_stream();
                let copy = self.begin(What::All, &parameters);
                let written = copy.write_stream(stream, destination, &self.tuning, writing);
                let written = written.map_err(|error| self.problem(&error))?;
                self.verified(written, &parameters, None, passes)
            }
            Opened::Delta(reader) => {
                let (apply, own) = (delta::apply(args, self.verification), &*self.parameters);
                let applied = apply.run(reader, destination, own, &self.tuning, writing, reading);
                let applied = applied.map_err(|error| self.problem(&error))?;
                Ok(Done::new(applied, own))
            }
        }
    }

    /// Returns the parameters for a source that comes once. If it is not read back, all must be computed as it comes.
    fn of_stream(&self) -> Vec<Parameters> {
        match (self.sought(), self.parameters.first()) {
            (Some(sought), Some(own)) if self.verification != Verification::ReadBack => {
                sought.all(*own)
            }
            _ => self.parameters.clone(),
        }
    }

    /// Reads back what was written, if that is wanted. The source is only read `again` to tell where the two differ.
    fn verified(
        &self,
        written: Written,
        parameters: &[Parameters],
        again: Option<&dyn Source>,
        passes: &Passes,
    ) -> Result<Done, Problem> {
        if self.verification != Verification::ReadBack {
            return Ok(Done::new(written.into_copied(), parameters));
        }
        let copied = written.copied();
        let known = pairs(parameters, copied);
        let zeros = copied.amounts.map_or(0, |amounts| amounts.zeroed);
        let all = match self.sought() {
            Some(sought) if !self.args.is_partial() && !known.is_empty() => {
                sought.read_back(&known, copied.size, zeros)
            }
            _ => parameters.to_vec(),
        };
        self.read_back(written, &all, again, passes)
    }

    /// Reads back what was written, and compares it with the map that is expected.
    fn read_back(
        &self,
        written: Written,
        parameters: &[Parameters],
        again: Option<&dyn Source>,
        passes: &Passes,
    ) -> Result<Done, Problem> {
        let read = written.read_back(parameters, again, &self.tuning, &passes.reading);
        let (copied, image) = read.map_err(|error| self.problem(&error))?;
        if let Some(expected) = &self.expected_map {
            let checked = expected.check(image, copied.size, &self.tuning, &passes.comparing);
            checked.map_err(|error| expect_map::problem(self.args, &error))?;
        }
        Ok(Done::new(copied, parameters))
    }

    /// Begins a copy with the options.
    fn begin<'p>(&self, what: What<'p>, parameters: &'p [Parameters]) -> blkcopy::Job<'p> {
        blkcopy::Job::new(what, parameters)
            .zeros(self.args.zeros.unwrap_or_default())
            .update(self.args.update)
            .verify(self.verification.of_copy())
    }

    fn to_stdout(&self, source: &dyn Source, progress: &Progress) -> Result<Copied, Problem> {
        let (parameters, tuning) = (&self.parameters, &self.tuning);
        let received = blkcopy::to_stream(source, &mut Stdout, parameters, tuning, progress);
        let received = received.map_err(|error| self.problem(&error))?;
        stdio::sync_stdout().map_err(|error| Problem::from(&error))?;
        Ok(received)
    }

    fn to_destination(
        &self,
        subject: &Subject<'_>,
        destination: Box<dyn Destination>,
        what: What<'_>,
        passes: &Passes,
    ) -> Result<Done, Problem> {
        let copy = self.begin(what, &self.parameters).share(self.shared_file(subject));
        if let What::Only(only) = what {
            let size = subject.source.size();
            let bytes = only.in_part(0, size).bytes();
            // They are compared after all of the destination was read.
            passes.expect(bytes, size.saturating_add(bytes));
        }
        let written = copy.write(subject.source, destination, &self.tuning, &passes.writing);
        let written = written.map_err(|error| self.problem(&error))?;
        self.verified(written, &self.parameters, Some(subject.source), passes)
    }

    /// Returns the file whose storage the copy may share.
    fn shared_file<'s>(&self, subject: &Subject<'s>) -> Option<BorrowedFd<'s>> {
        let is_whole = subject.partition.is_none() && self.args.reflink != Some(Reflink::Never);
        subject.image.whole_file().filter(|_| is_whole)
    }

    /// Returns the extents to copy, if a list or a bitmap names them.
    fn only(
        &self,
        image: &Image,
        selected: &Selected,
        list: Option<ChangeList<'_>>,
    ) -> Result<Option<Changes>, Problem> {
        let changes = match (&self.args.bitmap, list) {
            (Some(name), _) => Changes::of_bitmap(image, name.as_bytes()).map_err(|error| {
                Problem::of_image(&error, &self.args.source).about(&self.args.source)
            })?,
            (None, Some(list)) => list.read(image.size())?,
            (None, None) => return Ok(None),
        };
        Ok(Some(changes.in_part(selected.offset(), selected.size())))
    }

    /// Copies with a map as the log. `judge` fails if the content is not what was expected.
    fn with_log(
        &self,
        subject: &Subject<'_>,
        destination: Box<dyn Destination>,
        output: &Output,
        kept: &Kept,
        passes: &Passes,
        judge: &Judge<'_>,
    ) -> Result<Done, Problem> {
        let Passes { writing, .. } = passes;
        let (args, source) = (self.args, subject.source);
        let reads_back = self.verification == Verification::ReadBack;
        let problem = |error: Error| self.problem(&error);
        let log = log::of_copy(args, output, subject, (&kept.found, kept.leftover))?;
        let expect = |compared: u64, left| {
            passes.expect(compared.saturating_add(left), source.size());
        };
        let logged = self.begin(What::All, &self.parameters).logged(
            log,
            &*destination,
            &self.tuning,
            writing,
            expect,
        );
        let logged = logged.map_err(|refused| place::problem(args, &refused))?;
        let copied = logged.write(destination, &self.tuning, writing).map_err(problem)?;
        let is_whole = copied.whole().is_some();
        // A finished map keeps the new files, so this comes first.
        let found = copied.whole().map(judge).transpose()?.flatten();
        let (written, log) = copied.finish(&self.tuning).map_err(problem)?;
        // What was judged needs no further checksums.
        let parameters = if is_whole { &self.parameters } else { &self.parameters[..1] };
        let done = match found {
            Some(_) if reads_back => self.read_back(written, parameters, Some(source), passes),
            _ => self.verified(written, parameters, Some(source), passes),
        };
        // The map has what the destination should hold.
        let done = done.inspect_err(|_| log.withdraw())?;
        Ok(Done { found, ..done })
    }

    /// Returns what was copied, as far as it can be read again.
    fn content<'o>(&self, opened: &'o Opened) -> sought::Copied<'o> {
        match opened {
            Opened::Image(_, selected) if !self.args.is_partial() => {
                sought::Copied::Image(selected)
            }
            Opened::Stream(stream, is_decompressed) => {
                sought::Copied::Stream(stream.shape(), !is_decompressed)
            }
            Opened::Image(..) | Opened::Delta(_) => sought::Copied::Part,
        }
    }

    /// Returns the checksum to print. Fails unless it is the one that was expected.
    fn judge(
        &self,
        copied: &Copied,
        parameters: &[Parameters],
        content: &sought::Copied<'_>,
        bytes: Option<&Bytes>,
    ) -> Result<Option<Match>, Problem> {
        let known = pairs(parameters, copied);
        let Some(own) = known.first() else { return Ok(None) };
        let Some(sought) = self.sought() else {
            self.check_expected(&own.1)?;
            return Ok(Some(Match { checksum: *own, is_of_bytes: false }));
        };
        let zeros = copied.amounts.map_or(0, |amounts| amounts.zeroed);
        sought.find(&self.args.source, &known, content, zeros, bytes, &self.tuning).map(Some)
    }

    fn sought(&self) -> Option<&Sought> {
        self.wanted.as_ref()?.sought.as_ref()
    }

    /// Describes why the copy failed.
    fn problem(&self, error: &Error) -> Problem {
        let (source, destination) = (&*self.args.source, &*self.args.destination);
        let because = |reason: &io::Error| {
            let problem = Problem::new(format!("{error}: {}", messages::reason(reason)));
            match advice::of_io(reason) {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            }
        };
        match error {
            Error::Source(error) => Problem::of_pass(error, source).about(source),
            Error::Destination { source: reason, .. } | Error::Range { source: reason, .. } => {
                because(reason)
            }
            Error::ReadBack(error) => Problem::of_pass(error, destination),
            Error::Unexpected(digest) => self.unexpected(digest),
            Error::Differs { .. } => {
                let problem = Problem::new(error.to_string()).with_outcome(Outcome::Errors);
                match () {
                    () if self.args.apply => {
                        problem.with_hint("it did not have the content that the delta was made for")
                    }
                    () if self.args.map.is_some() => {
                        problem.with_hint("--update without --map writes what differs")
                    }
                    () => problem.with_hint("--update writes what differs"),
                }
            }
            Error::Base(error) => {
                let name = self.args.delta_from.as_deref().or(self.args.destination_map.as_deref());
                let name = name.unwrap_or(Path::new("-"));
                Problem::from(error).about(name.as_os_str())
            }
            Error::Log(error) => log::failed(self.args, error),
            Error::Delta { .. } => Problem::new(error.to_string()).about(source),
            Error::NotBase { .. } => {
                Problem::new(error.to_string()).with_outcome(Outcome::Useless).with_hint(NOT_BASE)
            }
            Error::Empties => Problem::new(error.to_string())
                .with_outcome(Outcome::Useless)
                .with_hint("--force applies it"),
            Error::BaseSize { .. } => {
                let problem = Problem::new(error.to_string()).with_outcome(Outcome::Useless);
                match self.args.apply {
                    true => problem.with_hint("the delta was made for something else"),
                    false => problem.with_hint("--update compares all of it with the source"),
                }
            }
            error => Problem::new(error.to_string()),
        }
    }

    /// Returns the value of `--expect`.
    fn expected(&self) -> Option<&[u8]> {
        self.wanted.as_ref()?.expected.as_deref()
    }

    /// Fails unless the checksum is the one that was expected.
    fn check_expected(&self, digest: &Digest) -> Result<(), Problem> {
        match self.expected() {
            Some(expected) if digest.as_bytes() != expected => Err(self.unexpected(digest)),
            _ => Ok(()),
        }
    }

    fn unexpected(&self, digest: &Digest) -> Problem {
        let found = format!("has the checksum {digest}, and not the one of --expect");
        let problem = Problem::new(found).with_outcome(Outcome::Errors);
        match self.sought() {
            None => problem,
            Some(_) => problem.with_hint("sha256sum has the one of --construction linear"),
        }
    }
}

/// Fails if what was written is not what was expected.
type Judge<'a> = dyn Fn(&Copied) -> Result<Option<Match>, Problem> + 'a;

/// A copy that was made.
struct Done {
    copied: Copied,
    /// Parameters of its checksums.
    parameters: Vec<Parameters>,
    /// What was sent of a delta.
    sent: Option<Sent>,
    /// The checksum that was expected, if that was looked at before the end.
    found: Option<Match>,
}

impl Done {
    fn new(copied: Copied, parameters: &[Parameters]) -> Self {
        Self { copied, parameters: parameters.to_vec(), sent: None, found: None }
    }
}

/// Returns the checksums of a copy with their parameters.
fn pairs(parameters: &[Parameters], copied: &Copied) -> Vec<(Parameters, Digest)> {
    parameters.iter().copied().zip(copied.digests.iter().copied()).collect()
}

const OF_BYTES: &str =
    "note: --expect is the checksum of the bytes of this file, whose content was copied";

const NOT_BASE: &str = "nothing is written to another disk, or another state of it; --force overwrites all the same, which is \
                        right only where --apply of this delta was interrupted";

/// An update that replaces more than this part, one in ten, is noted.
const MAX_REPLACED: u64 = 10;
