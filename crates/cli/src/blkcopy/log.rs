//! The map that a copy writes, which is its log.

use std::path::Path;

use blkcopy::{Destination, Log, Resumed};
use blkhash::{Parameters, Salt};
use blkmap::{Commit, Error, Header, Recovered, Writer};
use blksum::Tuning;
use blksum::map::{Info, Made, Subject};

use super::args::Args;
use super::passes::Passes;
use super::place::{self, Kept};
use crate::map::{
    self,
    output::{Content, Output, Target},
};
use crate::problem::{Outcome, Problem};

/// What is left of a copy.
pub enum Begun {
    /// The bytes from an offset on.
    Copy { writer: Box<Writer<Log<Target>>>, from: u64 },
    /// Only reading back: everything was copied before an interruption.
    ReadBack,
}

/// Begins the log of a copy, or continues it. A new destination is kept from the first checkpoint on.
#[expect(clippy::too_many_arguments, reason = "are the parts of a copy")]
pub fn begin(
    args: &Args,
    output: &Output,
    subject: &Subject<'_>,
    parameters: &Parameters,
    destination: &dyn Destination,
    kept: &Kept,
    reads_back: bool,
    tuning: &Tuning,
    passes: &Passes,
) -> Result<Begun, Problem> {
    output.check_apart(subject.image).map_err(|it| problem(args, it))?;
    let size = subject.source.size();
    let header = Header::new(parameters.algorithm(), parameters.block_size(), Salt::EMPTY);
    let header = header.map_err(|error| problem(args, Problem::from(&error)))?;
    let info = Info::new(Made::Read).describe(subject);
    let old = match output.content().map_err(|it| problem(args, it))? {
        Content::Map(old) if old.commit().is_some() => Some(old),
        _ => None,
    };
    let refused = |refused| place::problem(args, &refused);
    if let Some(old) = &old {
        check(args, old, &header, size).map_err(|it| problem(args, it))?;
    }
    let resumed = old.as_deref().map(|old| Resumed::new(old, &info, subject, reads_back));
    let resumed = resumed.transpose().map_err(refused)?;
    passes.expect(resumed.as_ref().map_or(size, Resumed::amount), size);
    let checked =
        kept.found.check_resumed(destination, resumed.as_ref(), size, tuning, &passes.writing);
    let from = checked.map_err(refused)?;
    if resumed.is_some_and(|resumed| resumed.is_finished()) {
        return Ok(Begun::ReadBack);
    }
    let writer = match old {
        Some(old) => old.continued(size).map(|it| it.with_output(|file| output.continued(file))),
        None => output.begin(header, size),
    };
    let writer = writer.map_err(|error| failed(args, error))?;
    let of_image =
        |error: blksum::Error| Problem::of_pass(&error, subject.name).about(subject.name);
    let writer = blksum::map::prepared(writer, subject.source).map_err(of_image)?;
    let sync = destination.syncer().map_err(|error| problem(args, Problem::from(&error)))?;
    let time = args.checkpoint.unwrap_or(map::CHECKPOINT);
    let writer = writer.with_output(|target| Log::new(target.keeping(kept.leftover), sync));
    let writer = Box::new(writer.checkpoint_every(time, info.to_string()));
    Ok(Begun::Copy { writer, from })
}

/// Checks that a map is the log of a copy as it is made now. [`Resumed`] is compared with its content.
fn check(args: &Args, old: &Recovered, header: &Header, size: u64) -> Result<(), Problem> {
    let is_finished = old.commit().is_some_and(Commit::is_final);
    match (is_finished, args.resume) {
        (true, false) => return Err("exists: remove it, or write the map elsewhere".into()),
        (false, false) => {
            return Err(Problem::new("is not finished").with_hint("--resume continues the copy"));
        }
        (_, true) => {}
    }
    let useless = |reason: &str| Problem::new(reason).with_outcome(Outcome::Useless);
    let is_same = |it: &Header| {
        (it.algorithm, it.block_size, it.salt) == (header.algorithm, header.block_size, header.salt)
    };
    if !is_same(old.header()) {
        return Err(useless("has another digest or block size than the copy"));
    }
    match old.commit().map(Commit::image_size) {
        Some(then) if then != size => {
            Err(useless(&format!("is the map of {then} bytes, and the source has {size}")))
        }
        _ => Ok(()),
    }
}

/// Describes an error of the map.
pub fn problem(args: &Args, problem: Problem) -> Problem {
    let name = args.map.as_deref().unwrap_or(Path::new("-"));
    problem.about(name.as_os_str())
}

/// Describes an error of the map.
pub fn failed(args: &Args, error: Error) -> Problem {
    problem(args, error.into())
}
