//! The map that a copy writes, which is its log.

use std::path::Path;

use blkcopy::{Destination, Log};
use blkhash::{Parameters, Salt};
use blkmap::{Commit, Error, Header, Recovered, Writer};
use blksum::map::{Info, Made, Subject};

use super::args::Args;
use crate::map::{
    self,
    output::{Content, Output, Target},
};
use crate::outputs::Leftover;
use crate::problem::{Outcome, Problem};

/// What is left of a copy.
pub enum Begun {
    /// The bytes from an offset on.
    Copy { writer: Box<Writer<Log<Target>>>, from: u64 },
    /// Only reading back: everything was copied before an interruption.
    ReadBack,
}

/// Begins the log of a copy, or goes on with it. A new destination is kept from the first checkpoint on.
pub fn begin(
    args: &Args,
    output: &Output,
    subject: &Subject<'_>,
    parameters: &Parameters,
    destination: &dyn Destination,
    leftover: Leftover,
) -> Result<Begun, Problem> {
    output.check_apart(subject.image)?;
    let size = subject.source.size();
    let header = Header::new(parameters.algorithm(), parameters.block_size(), Salt::EMPTY);
    let header = header.map_err(|error| Problem::from(&error))?;
    let info = Info::new(Made::Read).describe(subject);
    let (writer, from) = match output.content()? {
        Content::Map(old) if old.commit().is_some() => {
            if check(args, &old, &header, &info)? {
                return Ok(Begun::ReadBack);
            }
            let writer = old.continued(size)?;
            let per_page = header.blocks_per_page() * u64::from(header.block_size);
            let from = writer.page().saturating_mul(per_page).min(size);
            (writer.with_output(|file| output.continued(file)), from)
        }
        _ => (output.begin(header, size)?, 0),
    };
    let of_image =
        |error: blksum::Error| Problem::of_pass(&error, subject.name).about(subject.name);
    let writer = blksum::map::prepared(writer, subject.source).map_err(of_image)?;
    let sync = destination.syncer().map_err(|error| Problem::from(&error))?;
    let time = args.checkpoint.unwrap_or(map::CHECKPOINT);
    let writer = writer.with_output(|target| Log::new(target.keeping(leftover), sync));
    let writer = Box::new(writer.checkpoint_every(time, info.to_string()));
    Ok(Begun::Copy { writer, from })
}

/// Checks that a map is the log of an interrupted copy of this source. Returns whether it is finished.
fn check(args: &Args, old: &Recovered, header: &Header, info: &Info) -> Result<bool, Problem> {
    let is_finished = old.commit().is_some_and(Commit::is_final);
    match (is_finished, args.resume) {
        (true, false) => return Err("exists: remove it, or write the map elsewhere".into()),
        (false, false) => {
            return Err(Problem::new("is not finished").with_hint("--resume goes on with the copy"));
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
    let then = old.info()?.and_then(|text| Info::parse(&text)).unwrap_or_default();
    if !then.is_same_image(info) {
        return Err(useless("is not the log of a copy of the source as it is now"));
    }
    Ok(is_finished)
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
