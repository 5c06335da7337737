//! The map that a copy writes, which is its log.

use std::path::Path;

use blkcopy::{Found, Logging, Refused};
use blkmap::Error;
use blksum::map::Subject;

use super::args::Args;
use crate::map::output::Output;
use crate::outputs::Leftover;
use crate::problem::{Outcome, Problem};

/// Returns the log of a copy to a destination with what it was. If it is new, it is kept from the first checkpoint on, as the map is.
pub fn of_copy<'a>(
    args: &Args,
    output: &'a Output,
    subject: &'a Subject<'a>,
    (found, destination): (&'a Found, Leftover),
) -> Result<Logging<'a>, Problem> {
    output.check_apart(subject.image).map_err(|it| problem(args, it))?;
    let (file, leftover) = output.file().expect("a log is a file");
    let leftovers = [leftover, destination];
    Ok(Logging {
        subject,
        found,
        file,
        resumes: args.resume,
        interval: args.checkpoint.unwrap_or(blkmap::CHECKPOINT),
        committed: Box::new(move || Leftover::keep_all(&leftovers)),
    })
}

/// Describes why the log is refused.
pub fn refused(args: &Args, refused: &Refused) -> Problem {
    let found = Problem::new(refused.to_string());
    let found = match refused {
        Refused::Log(error) => Problem::of_pass(error, &args.source),
        Refused::LogFinished => found.with_hint("remove it, or write the map elsewhere"),
        Refused::LogUnfinished => found.with_hint("--resume continues the copy"),
        Refused::OtherSource(_) | Refused::LogParameters | Refused::LogSize { .. } => {
            found.with_outcome(Outcome::Useless)
        }
        _ => found,
    };
    problem(args, found)
}

/// Describes an error of the map.
fn problem(args: &Args, problem: Problem) -> Problem {
    let name = args.map.as_deref().unwrap_or(Path::new("-"));
    problem.about(name.as_os_str())
}

/// Describes an error of the map.
pub fn failed(args: &Args, error: &Error) -> Problem {
    problem(args, error.into())
}
