//! Messages about wrong command lines.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Command};

use crate::stdio::Stderr;
use crate::{messages, values};

/// Parses `arguments` with the parser that `command` returns. An error that is a page of help has the one that they ask for:
/// `--help` and `help` list all options, `-h` the common ones. Both pages have the compact layout, one line for an option
/// where it fits. Only then is the parser made with them, because they cost more than all else that a start does.
pub fn parse(command: fn() -> Command, arguments: &[OsString]) -> Result<ArgMatches, clap::Error> {
    command().try_get_matches_from(arguments).or_else(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            with_help(command(), arguments).try_get_matches_from(arguments)
        }
        _ => Err(error),
    })
}

/// Refuses `--force` in a command without it, which overwrites in others, and would be an abbreviation here.
pub fn refuse_force(arguments: &[OsString]) -> Result<(), &'static str> {
    let mut options = arguments.iter().take_while(|argument| *argument != "--");
    match options.any(|argument| argument == "--force") {
        true => Err(
            "unrecognized option '--force': --force-share reads an image that is open for writing",
        ),
        false => Ok(()),
    }
}

fn with_help(parser: Command, arguments: &[OsString]) -> Command {
    let asks_for_all = |argument: &OsString| {
        let text = argument.as_encoded_bytes();
        text == b"help" || (text.len() > "--".len() && b"--help".starts_with(text))
    };
    if arguments.iter().skip(1).any(asks_for_all) {
        with_all_options(parser)
    } else {
        with_common_options(parser)
    }
}

fn with_all_options(command: Command) -> Command {
    command.mut_args(|option| option.hide_short_help(false)).mut_subcommands(with_all_options)
}

/// Makes the page short where options are hidden: one list, a sentence for each option, and one paragraph after it.
fn with_common_options(command: Command) -> Command {
    let command = command.mut_subcommands(with_common_options);
    if !command.get_arguments().any(Arg::is_hide_short_help_set) {
        return command;
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let first = after.split("\n\n").next().unwrap_or_default();
    let after = format!("{first}\n\n--help lists all options.");
    command.mut_args(short).after_help(after.trim_start().to_owned())
}

/// Cuts the help of an option to its first sentence.
fn short(option: Arg) -> Arg {
    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
    let sentence = help.split(". ").next().unwrap_or_default().to_owned();
    option.help_heading(Resettable::Reset).help(sentence)
}

/// Prints what is wrong with the command line, and which command has the help. Returns the exit status for that.
pub fn refuse(command: &str, lines: &[String]) -> ExitCode {
    for line in lines {
        messages::message(line);
    }
    // The exit status reports the problem even if this is lost.
    let _ = writeln!(Stderr, "Try '{command} --help' for more information.");
    ExitCode::from(USAGE)
}

/// Prints the usage of a command that lacks a subcommand. Returns the exit status for that.
pub fn explain(usage: &str) -> ExitCode {
    // The exit status reports the problem even if this is lost.
    let _ = Stderr.write_all(usage.as_bytes());
    ExitCode::from(USAGE)
}

/// Returns what is wrong with the command line, worded as in other commands where possible. Omits
/// the lines that clap adds about usage and help.
pub fn reasons(error: &clap::Error, text: &str) -> Vec<String> {
    let mut parts = text.strip_prefix("error: ").unwrap_or(text).split("\n\nUsage: ");
    let (text, usage) = (parts.next(), parts.next().and_then(|text| text.lines().next()));
    let is_ours = |line: &&str| {
        !line.is_empty() && !NOISE.iter().any(|beginning| line.starts_with(beginning))
    };
    let lines = text.unwrap_or_default().lines().map(str::trim).filter(is_ours);
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && let Some(first) = lines.first_mut()
    {
        *first = match option.strip_prefix('-') {
            None => {
                let usage = usage.map_or(String::new(), |usage| format!(": usage: {usage}"));
                format!("unexpected argument '{option}'{usage}")
            }
            Some(short) if !short.starts_with('-') => format!("invalid option -- '{short}'"),
            _ => format!("unrecognized option '{option}'{}", similar_option(error, option)),
        };
    }
    if error.kind() == ErrorKind::UnknownArgument {
        return lines;
    }
    if error.kind() == ErrorKind::MissingRequiredArgument
        && let Some(missing) = error.get(ContextKind::InvalidArg)
    {
        return vec![format!("missing {}", arguments(&options(missing)))];
    }
    let given = [ContextKind::InvalidArg, ContextKind::PriorArg].map(|kind| error.get(kind));
    for option in given.into_iter().flatten().flat_map(options) {
        for line in &mut lines {
            *line = line.replace(&format!("'{option}'"), name_of(option));
        }
    }
    lines
}

fn options(value: &ContextValue) -> Vec<&str> {
    match value {
        ContextValue::String(option) => vec![option],
        ContextValue::Strings(options) => options.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Lists arguments as a manual page shows them: `MAP and IMAGE...`.
fn arguments(names: &[&str]) -> String {
    let plain = names.iter().map(|name| name.replace(['<', '>'], ""));
    plain.collect::<Vec<_>>().join(" and ")
}

/// The option without the placeholder of its value, or the name of an argument.
fn name_of(option: &str) -> &str {
    match option.starts_with('-') {
        true => option.split([' ', '[', '=']).next().unwrap_or(option),
        false => option.trim_matches(['<', '[', ']', '>', '.']),
    }
}

/// Suggests the option that clap found for `given`, if the two are similar enough.
fn similar_option(error: &clap::Error, given: &str) -> String {
    let suggested = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(option)) => option.trim_start_matches('-'),
        _ => return String::new(),
    };
    let given = given.trim_start_matches('-');
    let found = values::similar(given, std::iter::once(suggested));
    found.map_or(String::new(), |option| format!(": {}", values::question(format!("--{option}"))))
}

/// Beginnings of lines that clap adds and that repeat other messages.
const NOISE: [&str; 2] = ["For more information", "tip: "];

/// The exit status for a wrong command line.
const USAGE: u8 = 2;
