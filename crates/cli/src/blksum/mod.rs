//! The command `blksum`.
//!
//! [`args`] parses the command line and [`settings`] resolves it. [`hash`], [`check`] and [`expect`] are the
//! modes. The first two process the images through [`blksum::in_order`], side by side if [`small`] can hash them.
//! [`search`] finds out how a value without a tag was computed, and [`log`] finds values in a log.
//!
//! [`input`](crate::image::input) finds out what a name refers to, [`names`] reads lists of names, and [`filter`](crate::image::filter) selects
//! files in a folder. [`check_files`] reads check files, [`lines`] parses them, and [`groups`] finds
//! lines about the same image. [`confine`] sets up the sandbox, and [`in_force`] describes it.
//!
//! [`recorded`] is what a tag records about how an image was read.
//!
//! [`maps`] writes maps along with checksums, and [`beside`] compares with them where a check fails. [`report`] is the
//! result for an image, [`about`](crate::image::about) its description, [`output`] standard output, and [`hints`]
//! suggests what to type instead.

mod args;
mod beside;
mod check;
mod check_files;
pub mod confine;
mod expect;
pub(crate) mod found;
mod groups;
mod hash;
mod hints;
mod implanted;
mod in_force;
mod lines;
mod log;
mod maps;
mod names;
mod output;
mod recorded;
mod report;
mod search;
mod settings;
mod small;
mod stated;
mod sums;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use blkhash::Parameters;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use self::args::Args;
use self::maps::Maps;
use self::output::Output;
use self::settings::{Action, Settings};
use crate::problem::{Failure, Outcome};
use crate::value::digest;
use crate::{implementation, messages, outputs, problem, usage};

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    let status = parse_and_run();
    outputs::settle();
    status
}

fn parse_and_run() -> ExitCode {
    messages::name_program("blksum");
    blksys::Signals::hold();
    // An image may be in thousands of files.
    crate::map::raise_limit_on_files();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let result = parse(&arguments).and_then(|settings| match settings {
        Parsed::Settings(settings) => Ok(run(&settings)?),
        Parsed::Text(text) => Ok(Output::new().write(text.as_bytes()).map(|()| true)?),
    });
    problem::exit(result, || messages::program().to_owned(), Outcome::Errors)
}

/// The arguments of the command line, resolved.
enum Parsed {
    Settings(Box<Settings>),
    /// A text, such as the help.
    Text(String),
}

/// Returns the argument parser, for manual pages and completions.
pub fn command() -> clap::Command {
    Args::command()
}

fn run(settings: &Settings) -> io::Result<bool> {
    if !matches!(settings.action, Action::List) {
        for warning in
            implementation::warnings(settings.parameters.iter().map(Parameters::algorithm))
        {
            messages::message(&warning);
        }
    }
    let mut output = Output::new();
    match &settings.action {
        Action::List => {
            let names = digest::digest_names().join("\n") + "\n";
            output.write(names.as_bytes()).map(|()| true)
        }
        Action::Hash(hash) => {
            let maps = match Maps::open(settings, hash) {
                Ok(maps) => maps,
                Err(reason) => {
                    messages::message(&reason);
                    return Ok(false);
                }
            };
            outputs::guard();
            confine::hashing(settings, hash.recursive.is_some());
            hash::run(settings, hash, &maps, &mut output)
        }
        Action::Check(check) => check::run(settings, check, &mut output),
        Action::Expect(expect) => expect::run(settings, expect, &mut output),
    }
}

fn parse(arguments: &[OsString]) -> Result<Parsed, Failure> {
    usage::refuse_force(arguments).map_err(Failure::usage)?;
    let parsed = usage::parse(command, arguments).and_then(|mut matches| {
        let text_after_tag = index(&matches, "text") > index(&matches, "tag");
        Ok((Args::from_arg_matches_mut(&mut matches)?, text_after_tag))
    });
    let (args, text_after_tag) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return refusal(&error, arguments),
    };
    let threads = args.names.iter().find(|name| args.text && hints::is_number(name)).cloned();
    let settings = Settings::new(args, text_after_tag).map_err(|reason| {
        let hint = threads.map(|number| hints::threads(&number));
        Failure::Usage([Some(reason), hint].into_iter().flatten().collect())
    })?;
    Ok(Parsed::Settings(Box::new(settings)))
}

fn refusal(error: &clap::Error, arguments: &[OsString]) -> Result<Parsed, Failure> {
    let text = error.render().to_string();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return Ok(Parsed::Text(text));
    }
    let threads = arguments.iter().find_map(|argument| hints::attached_threads(argument));
    let hint = threads.map(hints::threads);
    Err(Failure::Usage(usage::reasons(error, &text).into_iter().chain(hint).collect()))
}

/// Returns the last position of a flag on the command line, if it was given.
fn index(matches: &ArgMatches, flag: &str) -> Option<usize> {
    let is_given = matches.value_source(flag) == Some(ValueSource::CommandLine);
    matches.indices_of(flag).filter(|_| is_given)?.next_back()
}
