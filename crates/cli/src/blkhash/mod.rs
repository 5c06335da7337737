//! The command `blkhash`, which lists and measures digest algorithms, describes images, verifies btrfs checksums,
//! makes and compares block maps, and makes and verifies trees of fs-verity and dm-verity.
//!
//! [`args`] is the command line, and each subcommand is a module.

mod acquisition;
mod algorithms;
mod args;
mod bench;
mod btrfs;
mod check;
mod info;
mod kernel;
mod limit;
mod map;
mod out;
mod output;
mod owners;
mod quality;
mod range;
mod source;
mod source_args;
mod suggest;
mod unreadable;
mod verity;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, CommandFactory, FromArgMatches};

use self::args::{Args, BenchWhat, Command};
use crate::problem::{Failure, Outcome};
use crate::stdio::Stdout;
use crate::{messages, outputs, problem, usage, values};

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    let status = parse_and_run();
    outputs::settle();
    status
}

fn parse_and_run() -> ExitCode {
    messages::name_program("blkhash");
    blksys::Signals::hold();
    // An image may be in thousands of files.
    crate::map::raise_limit_on_files();
    let command = match parse() {
        Ok(args) => args.command,
        Err(status) => return status,
    };
    // Of a command that verifies, an incomplete report is no verdict.
    let (result, lost) = match &command {
        Command::Algorithms(args) => (algorithms::run(args), None),
        Command::Bench(args::Bench { what: Some(BenchWhat::Image(args)), .. }) => {
            (bench::image::run(args), None)
        }
        Command::Bench(args) if args.quality => (quality::run(args), None),
        Command::Bench(args) => (bench::run(args), None),
        Command::Check(args) => (check::run(args), Some(Outcome::Unknown)),
        Command::Btrfs(args) => (btrfs::run(&args.command), Some(Outcome::Unknown)),
        Command::Info(args) => (info::run(args), Some(Outcome::Unknown)),
        Command::Owners(args) => (owners::run(args), Some(Outcome::Unknown)),
        Command::Map(args) => (map::run(&args.command), Some(Outcome::Unknown)),
        Command::Verity(args) => (verity::run(&args.command), Some(Outcome::Unknown)),
    };
    problem::exit(result, called, lost.unwrap_or(Outcome::Errors))
}

/// Returns the argument parser, for manual pages and completions.
pub fn command() -> clap::Command {
    with_help_and_without_headings(Args::command())
}

fn with_help_and_without_headings(command: clap::Command) -> clap::Command {
    let mut command = command.mut_subcommands(with_help_and_without_headings);
    if !command.get_arguments().any(|option| option.get_id() == "help") {
        let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort);
        command = command.disable_help_flag(true).arg(help.help("Print this help"));
    }
    command.mut_args(|option| option.help_heading(Resettable::Reset))
}

/// Parses the command line. Otherwise prints the requested help or what is wrong, and returns the exit
/// status.
fn parse() -> Result<Args, ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let matches = usage::parse(command, &arguments);
    matches.and_then(|mut matches| Args::from_arg_matches_mut(&mut matches)).map_err(|error| {
        let text = error.render().to_string();
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                problem::exit(print(&text), called, Outcome::Errors)
            }
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => usage::explain(&text),
            _ => usage::refuse(&called(), &reasons(&error, &text)),
        }
    })
}

/// Returns what is wrong with the command line, and which command to use instead of an unknown one.
fn reasons(error: &clap::Error, text: &str) -> Vec<String> {
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) if error.kind() == ErrorKind::InvalidSubcommand => {
            vec![format!(
                "unrecognized command '{name}': {}",
                meant(name).unwrap_or_else(|| suggest::instead_of(name, &commands()))
            )]
        }
        _ => usage::reasons(error, text),
    }
}

/// Suggests a whole command for a name: a command of a group that was left out, or the digest to measure.
fn meant(name: &str) -> Option<String> {
    let called = called();
    if called == format!("{} bench", messages::program())
        && name.parse::<blkhash::Algorithm>().is_ok()
    {
        return Some(format!("use {called} --filter {name}"));
    }
    let name = if name == "compare" { "diff" } else { name };
    let groups = command();
    let is_in = |group: &&clap::Command| group.find_subcommand(name).is_some();
    let groups = groups.get_subcommands().filter(is_in).map(clap::Command::get_name);
    let program = messages::program();
    let found: Vec<String> = groups.map(|group| format!("{program} {group} {name}")).collect();
    (called == program && !found.is_empty()).then(|| format!("use {}", values::one_of(&found)))
}

/// Returns the names of the subcommands that may follow the commands on the command line.
fn commands() -> Vec<String> {
    let mut command = command();
    for argument in std::env::args_os().skip(1) {
        if let Some(inner) = command.find_subcommand(argument) {
            command = inner.clone();
        }
    }
    command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect()
}

/// Returns the program with the subcommands on the command line, such as `blkhash map create`.
fn called() -> String {
    let mut name = messages::program().to_owned();
    let mut command = Args::command();
    for argument in std::env::args_os().skip(1) {
        let Some(inner) = command.find_subcommand(&argument) else { break };
        name = format!("{name} {}", inner.get_name());
        command = inner.clone();
    }
    name
}

/// Writes `text`, which is the whole output of a command, to standard output.
fn print(text: &str) -> Result<Outcome, Failure> {
    Stdout.write_all(text.as_bytes())?;
    Ok(Outcome::Clean)
}

fn warn(algorithms: impl IntoIterator<Item = blkhash::Algorithm>) {
    for warning in crate::implementation::warnings(algorithms) {
        messages::message(&warning);
    }
}

/// Restricts the process to the files that it has open.
fn confine_to_open_files() {
    outputs::guard();
    blksandbox::Sandbox::for_images(&blkimage::OpenOptions::new()).enforce();
}
