//! Copies the image on the command line.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use blkcopy::{Copied, Copy, Destination, Error, Verify};
use blkhash::{Digest, Parameters, Salt};
use blkimage::{OpenOptions, ReadMethod, Source};
use blkmap::{Commit, Header, Writer};
use blksum::map::{Info, Made, Subject};
use blksum::{Progress, Tuning};

use super::args::{Args, Verification};
use super::output::Report;
use super::place::Place;
use super::source::{self, Opened};
use crate::map::output::{Content, Output, Target};
use crate::messages;
use crate::outputs::{Named, mode_of};
use crate::problem::{Failure, Outcome, Problem};
use crate::progress::{Amount, Counts, Reporter};
use crate::stdio::Stdout;

/// Copies the image, and prints the result.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let job = Job::new(args)?;
    let place = Place::open(args);
    let map = args.map.as_ref().map(|name| {
        let opened = Output::open(name.as_os_str(), Named::ByUser, mode_of([&*args.source]));
        opened.map_err(|problem| problem.about(name.as_os_str()))
    });
    let destination = Some(&args.destination).filter(|name| **name != "-");
    let names = [&args.source].into_iter().chain(destination);
    let options = args.opening.confine(names)?;
    let opened = place.and_then(|place| Ok((place, map.transpose()?)));
    let reporter = Reporter::new(args.progress.unwrap_or_default(), Some(1));
    reporter.begin(&args.source);
    let copied = opened.and_then(|(place, map)| job.copy(place, map.as_ref(), &options, &reporter));
    reporter.end(&args.source, None);
    drop(reporter);
    match copied {
        Ok(report) => {
            report.print(args)?;
            Ok(job.verdict(&report))
        }
        Err(problem) => Ok(problem.report(&args.destination)),
    }
}

struct Job<'a> {
    args: &'a Args,
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
                ("--verify=readback", verification == Verification::ReadBack),
            ];
            if let Some((option, _)) = options.into_iter().find(|(_, is_given)| *is_given) {
                return Err(Failure::usage(format!(
                    "{option}: standard output cannot be read again"
                )));
            }
        }
        let wants_checksum = args.expect.is_some() || args.map.is_some() || args.tag;
        if verification == Verification::None && wants_checksum {
            return Err(Failure::usage(
                "--verify=none: --expect, --map and --tag need the checksum",
            ));
        }
        let parameters = (verification != Verification::None).then(|| parameters(args));
        let parameters = parameters.transpose().map_err(Failure::usage)?;
        let defaults = Tuning::default();
        let threads = args.threads.map_or(defaults.threads, usize::from);
        let tuning = defaults.with_threads(threads).with_max_zeros(args.opening.max_zeros);
        Ok(Self { args, parameters, verification, tuning })
    }

    fn copy(
        &self,
        place: Place<'_>,
        map: Option<&Output>,
        options: &OpenOptions,
        reporter: &Reporter,
    ) -> Result<Report, Problem> {
        let (args, started) = (self.args, Instant::now());
        let of_source = |problem: Problem| problem.about(&args.source);
        let opened = source::open(args, options).map_err(of_source)?;
        if let Opened::Image(image, _) = &opened {
            place.check_apart(image)?;
        }
        let progress = [Arc::new(Progress::new()), Arc::new(Progress::new())];
        let passes = if self.verification == Verification::ReadBack { 2 } else { 1 };
        let amount =
            opened.size().map(|size| Amount { total: size.saturating_mul(passes), stored: None });
        let watch = reporter.watch(amount, {
            let progress = progress.clone();
            move || {
                let sum = |of: fn(&Progress) -> u64| progress.iter().map(|it| of(it)).sum();
                let data = sum(Progress::data);
                Counts { done: sum(Progress::done), data, read: data }
            }
        });
        let leftover = place.leftover();
        let destination = place.destination(args, &options.nbd)?;
        let (format, done) = match (opened, destination) {
            (Opened::Image(image, selected), None) => {
                (image.format().name(), self.to_stdout(selected.source(), &progress[0]))
            }
            (Opened::Image(image, selected), Some(destination)) => {
                let subject = Subject {
                    name: &args.source,
                    image: &image,
                    source: selected.source(),
                    snapshot: args.opening.snapshot.as_deref(),
                    partition: args.partition,
                };
                let done = self.to_destination(&subject, destination, map, &progress);
                (image.format().name(), done)
            }
            (Opened::Stream(mut stream), Some(destination)) => {
                let copy = self.begin().run_stream(
                    &mut stream,
                    destination,
                    &self.tuning,
                    &progress[0],
                    &progress[1],
                );
                ("raw", copy.map(Done::of).map_err(|error| self.problem(&error)))
            }
            (Opened::Stream(_), None) => {
                return Err(Problem::new("the source is a pipe, too: there is nothing to copy"));
            }
        };
        drop(watch);
        let done = done?;
        if let Some(leftover) = leftover {
            leftover.keep();
        }
        Ok(Report {
            size: done.size,
            format,
            checksum: self.parameters.zip(done.digests.first().copied()),
            amounts: done.amounts,
            verification: self.verification,
            read_back: done.read_back,
            elapsed: started.elapsed(),
        })
    }

    /// Begins a copy with the options.
    fn begin(&self) -> Copy<'_> {
        let verify = match self.verification {
            Verification::ReadBack => Verify::ReadBack,
            _ => Verify::Source,
        };
        Copy::new(self.parameters.as_slice())
            .zeros(self.args.zeros.unwrap_or_default())
            .update(self.args.update)
            .verify(verify)
    }

    fn to_stdout(&self, source: &dyn Source, progress: &Progress) -> Result<Done, Problem> {
        let parameters = self.parameters.as_slice();
        let received = blkcopy::to_stream(source, &mut Stdout, parameters, &self.tuning, progress);
        let received = received.map_err(|error| self.problem(&error))?;
        Ok(Done { digests: received.digests, size: received.size, amounts: None, read_back: None })
    }

    fn to_destination(
        &self,
        subject: &Subject<'_>,
        destination: Box<dyn Destination>,
        map: Option<&Output>,
        [writing, reading]: &[Arc<Progress>; 2],
    ) -> Result<Done, Problem> {
        let mut writer = match map {
            Some(output) => Some(self.begin_map(output, subject)?),
            None => None,
        };
        let leaf = writer.as_ref().map(|writer| writer.header().leaf());
        let mut copy = self.begin();
        if let (Some(leaf), Some(writer)) = (&leaf, &mut writer) {
            copy = copy.blocks(leaf, writer);
        }
        let copied = copy.run(subject.source, destination, &self.tuning, writing, reading);
        let copied = copied.map_err(|error| self.problem(&error))?;
        // The map is only finished if the copy is.
        if let Some(writer) = writer {
            let info = Info::new(Made::Read).describe(subject);
            writer.finish(&info.to_string()).map_err(|error| self.of_map(error.into()))?;
        }
        Ok(Done::of(copied))
    }

    fn begin_map(&self, output: &Output, subject: &Subject<'_>) -> Result<Writer<Target>, Problem> {
        let of_map = |problem| self.of_map(problem);
        output.check_apart(subject.image).map_err(of_map)?;
        if let Content::Map(old) = output.content().map_err(of_map)?
            && old.commit().is_some_and(Commit::is_final)
        {
            return Err(of_map("exists: remove it, or write the map elsewhere".into()));
        }
        let parameters = self.parameters.as_ref().expect("a map has a digest");
        let header = Header::new(parameters.algorithm(), parameters.block_size(), Salt::EMPTY);
        let header = header.map_err(|error| of_map(Problem::from(&error)))?;
        let writer = output.begin(header, subject.source.size());
        let writer = writer.map_err(|error| of_map(error.into()))?;
        let prepared = blksum::map::prepared(writer, subject.source);
        prepared.map_err(|error| Problem::of_pass(&error, subject.name).about(subject.name))
    }

    fn of_map(&self, problem: Problem) -> Problem {
        let name = self.args.map.as_deref().unwrap_or(Path::new("-"));
        problem.about(name.as_os_str())
    }

    /// Describes why the copy failed.
    fn problem(&self, error: &Error) -> Problem {
        let (source, destination) = (&*self.args.source, &*self.args.destination);
        let because =
            |reason: &io::Error| Problem::new(format!("{error}: {}", messages::reason(reason)));
        match error {
            Error::Source(error) => Problem::of_pass(error, source).about(source),
            Error::Destination { source: reason, .. } | Error::Range { source: reason, .. } => {
                because(reason)
            }
            Error::ReadBack(error) => Problem::of_pass(error, destination),
            Error::Differs { .. } => Problem::new(error.to_string()).with_outcome(Outcome::Errors),
            error => Problem::new(error.to_string()),
        }
    }

    /// Returns whether the checksum is the one that was expected.
    fn verdict(&self, report: &Report) -> Outcome {
        let Some(expected) = &self.args.expect else { return Outcome::Clean };
        match &report.checksum {
            Some((_, digest)) if digest.as_bytes() == expected.digest => Outcome::Clean,
            _ => {
                let problem = Problem::new("does not have the checksum of --expect");
                problem.with_outcome(Outcome::Errors).report(&self.args.destination)
            }
        }
    }
}

/// The result of a copy.
struct Done {
    digests: Vec<Digest>,
    size: u64,
    /// How much was written, zeroed and left as it was.
    amounts: Option<[u64; 3]>,
    read_back: Option<ReadMethod>,
}

impl Done {
    fn of(copied: Copied) -> Self {
        let Copied { written, zeroed, equal, .. } = copied;
        let amounts = Some([written, zeroed, equal]);
        Self { digests: copied.digests, size: copied.size, amounts, read_back: copied.read_back }
    }
}

/// Returns the parameters of the checksum.
fn parameters(args: &Args) -> Result<Parameters, String> {
    let named = args.expect.as_ref().and_then(|value| value.algorithm);
    if let (Some(named), Some(digest)) = (named, args.digest)
        && named != digest
    {
        return Err(format!("--expect is {named}, and --digest {digest}"));
    }
    let algorithm = args.digest.or(named).unwrap_or(Parameters::default().algorithm());
    let construction = args.construction.unwrap_or_default();
    let block_size = args.block_size.unwrap_or(construction.default_block_size());
    let parameters = Parameters::new(algorithm, construction, block_size);
    let parameters = parameters.map_err(|error| error.to_string())?;
    if let Some(value) = &args.expect {
        let (length, size) = (value.digest.len(), algorithm.digest_size());
        if value.parts.is_some() || length != size {
            return Err(format!(
                "--expect: is no {algorithm}, which has {size} bytes: name it with --digest"
            ));
        }
    }
    if args.map.is_some() && !Header::accepts(algorithm) {
        return Err(format!("--map: there are no maps of {algorithm}"));
    }
    Ok(parameters)
}
