//! `blkhash check`: verifies every checksum that images hold of themselves.

mod output;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use blkcheck::{Error, Options, Report, Verdict, check_selected, check_unopened, damaged_image};
use blkimage::OpenOptions;
use blksum::{Part, Progress, Selected};

use self::output::Output;
use super::args::Check;
use super::limit::Limit;
use crate::image;
use crate::problem::{Cause, Failure, Outcome, Problem};
use crate::progress::{Amount, Counts, Reporter};

/// Verifies every image on the command line.
pub fn run(args: &Check) -> Result<Outcome, Failure> {
    let options = args.opening.confine(&args.names)?;
    let reporter = Reporter::new(args.progress.when(), Some(args.names.len() as u64));
    let mut outcome = Outcome::Clean;
    let mut limit = Limit::new(args.max_errors);
    for name in &args.names {
        reporter.begin(name);
        let started = Instant::now();
        let mut output = Output::new(args, name, limit);
        let verified = verify(args, name, &options, &mut output, &reporter);
        reporter.end(name, None);
        limit = output.limit();
        outcome = outcome.and(match verified {
            Ok(report) => {
                output.end(&report, started.elapsed())?;
                match report.verdict() {
                    Verdict::Clean => Outcome::Clean,
                    Verdict::Damaged => Outcome::Errors,
                    Verdict::Incomplete => Outcome::Unknown,
                }
            }
            Err(problem) => {
                output.give_up(&problem)?;
                problem.report(name)
            }
        });
    }
    Ok(outcome)
}

/// Verifies the structure of an image, then the layers of its content.
fn verify(
    args: &Check,
    name: &OsString,
    opening: &OpenOptions,
    output: &mut Output<'_>,
    reporter: &Reporter,
) -> Result<Report, Problem> {
    let defaults = Options::default();
    let options = defaults
        .with_threads(args.threads.map_or(defaults.threads, usize::from))
        .with_max_findings(output.limit().findings());
    let progress = Arc::new(Progress::new());
    let _shown = reporter.watch(None::<Amount>, {
        let progress = progress.clone();
        move || {
            let done = progress.done();
            Counts { done, data: done, read: done }
        }
    });
    let checked = match image::open::open(name, opening) {
        Ok(image) => {
            let selected = Selected::new(image, args.partition.map(Part::Partition));
            let selected = selected.map_err(|error| Problem::new(error.to_string()))?;
            check_selected(&selected, &options, &progress, output).map_err(|error| match error {
                Error::Image(error) => Problem::of_image(&error, name),
                error => Problem::new(error.to_string()),
            })
        }
        // The structure may tell more of an image whose content cannot be opened.
        Err(problem) => {
            let (path, reason) = (Path::new(name), problem.text());
            let checked = check_unopened(path, opening, &reason, &options, &progress, output);
            checked.ok().flatten().ok_or(problem)
        }
    };
    match checked {
        Err(problem) if matches!(problem.cause, Cause::Damaged | Cause::Digest) => {
            Ok(damaged_image(&problem.text(), output))
        }
        checked => checked,
    }
}
