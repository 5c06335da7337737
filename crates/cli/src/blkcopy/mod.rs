//! The command `blkcopy`, which copies an image and prints the checksum of what the destination holds.
//!
//! [`args`] is the command line, and [`checksum`] what it says about that, or [`sought`] finds out. [`source`] opens the source, and [`place`] the destination, unless that would lose something, as
//! the library decides.
//! [`run`] copies, [`delta`] sends and applies deltas, [`log`] is the map that it writes and [`interrupt`] says that it
//! can be resumed, [`passes`] tell how far it is, and [`output`] prints the result.

mod args;
mod checksum;
mod delta;
mod expect_map;
mod interrupt;
mod log;
mod output;
mod passes;
mod place;
mod replaced;
mod run;
mod sought;
mod source;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory, FromArgMatches};

use self::args::Args;
use crate::problem::{Failure, Outcome};
use crate::stdio::Stdout;
use crate::{messages, outputs, problem, usage};

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    let status = parse_and_run();
    outputs::settle();
    status
}

/// Returns the argument parser, for manual pages and completions.
pub fn command() -> clap::Command {
    Args::command()
}

fn parse_and_run() -> ExitCode {
    messages::name_program("blkcopy");
    blksys::Signals::hold();
    // An image may be in thousands of files.
    crate::map::raise_limit_on_files();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let parsed = usage::parse(command, &arguments)
        .and_then(|mut matches| Args::from_arg_matches_mut(&mut matches));
    let result = match parsed {
        Ok(args) => run::run(&args),
        Err(error) => refusal(&error),
    };
    problem::exit(result, || messages::program().to_owned(), Outcome::Unknown)
}

fn refusal(error: &clap::Error) -> Result<Outcome, Failure> {
    use std::io::Write;
    let text = error.render().to_string();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        Stdout.write_all(text.as_bytes())?;
        return Ok(Outcome::Clean);
    }
    let mut reasons = usage::reasons(error, &text);
    let is_format = error.get(ContextKind::InvalidArg).is_some_and(|it| it.to_string() == "-O");
    if let Some(first) = reasons.first_mut().filter(|_| is_format) {
        first.push_str(
            ": a copy is raw: to write another format, copy to a qemu-nbd that serves it",
        );
    }
    Err(Failure::Usage(reasons))
}
