//! How commands end: with a status, and with what was wrong with the command line.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::stdio::Stderr;
use crate::{messages, values};

/// Why there is nothing to run.
pub enum Refusal {
    /// The user asked for a text.
    Text(String),
    /// The command line is wrong.
    Usage(Vec<String>),
}

/// Says what is wrong with the command line.
pub fn refuse(program: &str, lines: &[String]) -> ExitCode {
    for line in lines {
        messages::message(program, line);
    }
    // The status says the same.
    let _ = writeln!(Stderr, "Try '{program} --help' for more information.");
    ExitCode::from(USAGE)
}

/// Prints the usage of a command that lacks a subcommand.
pub fn explain(usage: &str) -> ExitCode {
    // The status says the same.
    let _ = Stderr.write_all(usage.as_bytes());
    ExitCode::from(USAGE)
}

/// The status of a run: whether all went well, or why it could not be written.
pub fn exit(program: &str, result: io::Result<bool>) -> ExitCode {
    match result {
        Ok(true) if !messages::is_lost() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        // Whoever closed the pipe has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Err(error) => {
            messages::message(program, &format!("write error: {}", messages::reason(&error)));
            ExitCode::FAILURE
        }
    }
}

/// What is wrong, in the words of other commands where they have some. What clap adds (usage, where
/// to find help) is left out.
pub fn reasons(error: &clap::Error, text: &str) -> Vec<String> {
    let text = text.strip_prefix("error: ").unwrap_or(text).split("\n\nUsage:").next();
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
            Some(short) if !short.starts_with('-') => format!("invalid option -- '{short}'"),
            _ => format!("unrecognized option '{option}'{}", similar_option(error, option)),
        };
    }
    lines
}

/// The option that `given` is a misspelling of, if clap found one that really is similar.
fn similar_option(error: &clap::Error, given: &str) -> String {
    let suggested = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(option)) => option.trim_start_matches('-'),
        _ => return String::new(),
    };
    let given = given.trim_start_matches('-');
    let found = values::similar(given, std::iter::once(suggested));
    found.map_or(String::new(), |option| format!(": did you mean --{option}?"))
}

/// How lines begin that clap adds and that say nothing new here.
const NOISE: [&str; 2] = ["For more information", "tip: "];

/// The exit status for a wrong command line.
const USAGE: u8 = 2;
