//! Copies the image on the command line.

use std::io;
use std::path::Path;
use std::time::Instant;

use blkcopy::{Copied, Copy, Destination, Error};
use blkhash::{Construction, Digest, Parameters};
use blkimage::{Image, OpenOptions, Source};
use blkmap::Map;
use blksum::changes::Changes;
use blksum::map::{Info, Made, Subject};
use blksum::{Progress, Selected, Tuning};

use super::args::{Args, Verification};
use super::checksum::Wanted;
use super::delta;
use super::interrupt::Held;
use super::log::{self, Begun};
use super::output::{self, Report};
use super::passes::Passes;
use super::place::{self, Kept, Place};
use super::source::{self, Opened};
use crate::image::advice;
use crate::map::change_list::ChangeList;
use crate::map::output::Output;
use crate::messages;
use crate::outputs::{Named, mode_of};
use crate::problem::{Failure, Outcome, Problem};
use crate::progress::Reporter;
use crate::stdio::{self, Stdout};

/// Copies the image, and prints the result.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let job = Job::new(args)?;
    let place = place::open(args);
    let base = args.delta_from.as_deref().or(args.destination_map.as_deref()).map(delta::base);
    let list = args.changes.as_ref().map(|name| ChangeList::open(name, args.changes_format));
    let list = list.transpose()?;
    let map = args.map.as_ref().map(|name| {
        let opened = Output::open(name.as_os_str(), Named::ByUser, mode_of([&*args.source]));
        opened.map_err(|problem| problem.about(name.as_os_str()))
    });
    let destination = Some(&args.destination).filter(|name| **name != "-");
    let names = [&args.source].into_iter().chain(destination);
    let held = args.map.clone().map(|map| (Held::new(), map));
    let mut options = args.opening.confine(names)?;
    if let Some((held, map)) = held {
        held.explain(args.destination.clone(), map);
    }
    if let Some(name) = &args.bitmap {
        options.nbd = options.nbd.bitmap(name.clone());
    }
    let opened = place.and_then(|place| Ok((place, base.transpose()?, map.transpose()?)));
    let reporter = Reporter::new(args.progress.unwrap_or_default(), Some(1));
    reporter.begin(&args.source);
    let copied = opened.and_then(|(place, base, map)| {
        let files = Files { base, list, map };
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
    parameters: Option<Parameters>,
    verification: Verification,
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
                ("--zeros", args.zeros.is_some()),
                ("--map", args.map.is_some()),
                ("--destination-map", args.destination_map.is_some()),
                ("--bitmap", args.bitmap.is_some()),
                ("--changes", args.changes.is_some()),
                ("--verify=readback", verification == Verification::ReadBack),
            ];
            if let Some((option, _)) = options.into_iter().find(|(_, is_given)| *is_given) {
                return Err(Failure::usage(format!(
                    "{option}: standard output cannot be read again"
                )));
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
        delta::check(args, verification).map_err(Failure::usage)?;
        let has_own = verification != Verification::None && !has_none;
        let wanted = has_own.then(|| Wanted::new(args)).transpose().map_err(Failure::usage)?;
        if args.map.as_deref() == Some(Path::new("-")) {
            return Err(Failure::usage("--map: a map is written to a file"));
        }
        if args.resume && args.construction == Some(Construction::Linear) {
            return Err(Failure::usage(
                "--resume: linear cannot be continued, as it has no blocks",
            ));
        }
        let defaults = Tuning::default();
        let threads = args.threads.map_or(defaults.threads, usize::from);
        let tuning = defaults.with_threads(threads).with_max_zeros(args.opening.max_zeros);
        let parameters = wanted.as_ref().map(|it| it.parameters);
        Ok(Self { args, wanted, parameters, verification, tuning })
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
        let opened = source::open(args, options).map_err(of_source)?;
        let passes = Passes::new(self.verification == Verification::ReadBack);
        if let Some(size) = opened.size() {
            passes.expect(size, size);
        }
        let watch = passes.watch(reporter);
        let source = match &opened {
            Opened::Image(image, _) => Some(&**image),
            Opened::Stream(_) | Opened::Delta(_) => None,
        };
        let ready = place.map(|place| place.ready(args, source, options)).transpose()?;
        let (destination, kept) = ready.unzip();
        let mut sent = None;
        let (format, done) = match (opened, destination) {
            (Opened::Image(image, selected), None) => {
                place::check_stdout(args, &image)?;
                let source = selected.source();
                let done = match (&files.base, &self.parameters) {
                    (Some(base), Some(parameters)) => {
                        let expected = self.expected();
                        let result = delta::send(
                            base,
                            source,
                            parameters,
                            expected,
                            &self.tuning,
                            &passes.writing,
                        );
                        let result = result.map_err(|error| self.problem(&error))?;
                        Ok(sent.insert(result).copied.clone())
                    }
                    _ => self.to_stdout(source, &passes.writing),
                };
                (image.format().name(), done)
            }
            (Opened::Image(image, selected), Some(destination)) => {
                let subject = Subject {
                    name: &args.source,
                    image: &image,
                    source: selected.source(),
                    snapshot: args.opening.snapshot.as_deref(),
                    partition: args.partition,
                };
                let only = self.only(&image, &selected, files.list)?;
                let done = match (files.map.as_ref().zip(kept.as_ref()), &files.base, &only) {
                    (Some((map, kept)), ..) => {
                        self.with_log(&subject, destination, map, kept, &passes)
                    }
                    (None, base, only) => self.to_destination(
                        &subject,
                        destination,
                        base.as_ref(),
                        only.as_ref(),
                        &passes,
                    ),
                };
                (image.format().name(), done)
            }
            (Opened::Stream(mut stream), Some(destination)) => {
                let copy = self.begin().run_stream(
                    &mut stream,
                    destination,
                    &self.tuning,
                    &passes.writing,
                    &passes.reading,
                );
                ("raw", copy.map_err(|error| self.problem(&error)))
            }
            (Opened::Delta(mut reader), Some(destination)) => {
                let apply = delta::apply(args, self.verification);
                let own = self.parameters.as_slice();
                let Passes { writing, reading, .. } = &*passes;
                let applied =
                    apply.run(&mut reader, destination, own, &self.tuning, writing, reading);
                ("raw", applied.map_err(|error| self.problem(&error)))
            }
            (Opened::Delta(_), None) => {
                return Err(Problem::new("is a pipe, and a delta is applied to what can be read"));
            }
            (Opened::Stream(_), None) => {
                return Err(Problem::new("is a pipe, and so is the source")
                    .with_hint("tee and blksum copy and check a stream"));
            }
        };
        drop(watch);
        let done = done?;
        if let Some(size) = done.destination_size.filter(|size| *size > done.size && !args.quiet) {
            let note =
                format!("note: has {size} bytes: the checksum is that of the first {}", done.size);
            messages::remark_of(args.destination.as_encoded_bytes(), &note);
        }
        self.check_expected(done.digests.first())?;
        kept.map_or(Ok(()), |kept| kept.keep(args))?;
        Ok(Report {
            size: done.size,
            format,
            checksum: self.parameters.zip(done.digests.first().copied()),
            amounts: done.amounts,
            sent,
            verification: self.verification,
            read_back: done.read_back,
            elapsed: started.elapsed(),
        })
    }

    /// Begins a copy with the options.
    fn begin(&self) -> Copy<'_> {
        Copy::new(self.parameters.as_slice())
            .zeros(self.args.zeros.unwrap_or_default())
            .update(self.args.update)
            .verify(self.verification.of_copy())
    }

    fn to_stdout(&self, source: &dyn Source, progress: &Progress) -> Result<Copied, Problem> {
        let parameters = self.parameters.as_slice();
        let received = blkcopy::to_stream(source, &mut Stdout, parameters, &self.tuning, progress);
        let received = received.map_err(|error| self.problem(&error))?;
        stdio::sync_stdout().map_err(|error| Problem::from(&error))?;
        Ok(received)
    }

    fn to_destination(
        &self,
        subject: &Subject<'_>,
        destination: Box<dyn Destination>,
        base: Option<&Map>,
        only: Option<&Changes>,
        passes: &Passes,
    ) -> Result<Copied, Problem> {
        let Passes { writing, reading, .. } = passes;
        let mut copy = self.begin();
        if let Some(base) = base {
            copy = copy.base(base);
        }
        if let Some(only) = only {
            let size = subject.source.size();
            let bytes = only.in_part(0, size).bytes();
            // They are compared after all of the destination was read.
            passes.expect(bytes, size.saturating_add(bytes));
            copy = copy.only(only);
        }
        let copied = copy.run(subject.source, destination, &self.tuning, writing, reading);
        copied.map_err(|error| self.problem(&error))
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

    /// Copies with a map as the log.
    fn with_log(
        &self,
        subject: &Subject<'_>,
        destination: Box<dyn Destination>,
        output: &Output,
        kept: &Kept,
        passes: &Passes,
    ) -> Result<Copied, Problem> {
        let Passes { writing, reading, .. } = passes;
        let (args, source) = (self.args, subject.source);
        let parameters = self.parameters.as_ref().expect("a map has a digest");
        let of_map = |error| log::failed(args, error);
        let reads_back = self.verification == Verification::ReadBack;
        let begun = log::begin(
            args,
            output,
            subject,
            parameters,
            &*destination,
            kept,
            reads_back,
            &self.tuning,
            passes,
        )?;
        let all = std::slice::from_ref(parameters);
        let (written, end, was_read) = match begun {
            Begun::ReadBack => {
                let copy = Copy::new(&[]).from(source.size());
                (copy.write(source, destination, &self.tuning, writing), None, false)
            }
            Begun::Copy { mut writer, from } => {
                let leaf = writer.header().leaf();
                let copy = self.begin().from(from).blocks(&leaf, &mut *writer);
                let written = copy.write(source, destination, &self.tuning, writing);
                let written = written.map_err(|error| self.problem(&error))?;
                if from == 0 {
                    self.check_expected(written.digests().first())?;
                }
                let end = output.length().map_err(|error| log::failed(args, error.into()))?;
                let info = Info::new(Made::Read).describe(subject);
                writer.finish(&info.to_string()).map_err(of_map)?;
                (Ok(written), Some(end), from == 0)
            }
        };
        let mut written = written.map_err(|error| self.problem(&error))?;
        if !was_read {
            let map = output.map().map_err(of_map)?;
            let digest = blkmap::checksum(&map, parameters.construction(), self.tuning.threads);
            written = written.with_digests(vec![digest.map_err(of_map)?]);
        }
        if !reads_back {
            return Ok(written.into_copied());
        }
        let copied = written.read_back(all, Some(source), &self.tuning, reading);
        copied.map_err(|error| {
            // The map is that of what the destination should hold, so it is not finished.
            if let Some(end) = end {
                let _ = output.cut(end);
            }
            self.problem(&error)
        })
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
            Error::Delta { .. } => Problem::new(error.to_string()).about(source),
            Error::NotBase { .. } => Problem::new(error.to_string())
                .with_outcome(Outcome::Useless)
                .with_hint("--force overwrites what an interrupted delta left"),
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
    fn check_expected(&self, digest: Option<&Digest>) -> Result<(), Problem> {
        match (self.expected(), digest) {
            (Some(expected), Some(digest)) if digest.as_bytes() != expected => {
                Err(self.unexpected(digest))
            }
            _ => Ok(()),
        }
    }

    fn unexpected(&self, digest: &Digest) -> Problem {
        let found = format!("has the checksum {digest}, and not that of --expect");
        let problem = Problem::new(found).with_outcome(Outcome::Errors);
        match self.wanted.as_ref().is_some_and(|it| it.is_stated) {
            true => problem,
            false => problem.with_hint("sha256sum has that of --construction linear"),
        }
    }
}
