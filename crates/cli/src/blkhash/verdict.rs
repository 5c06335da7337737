//! The exit statuses of commands that verify: nothing was found, errors were found, or something could not
//! be verified.

use std::io::ErrorKind;
use std::process::ExitCode;

use crate::messages;
use crate::usage::{self, Refusal};

/// The outcome of a command, which is its exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was examined and no errors were found.
    Clean = 0,
    /// Errors were found.
    Errors = 1,
    /// Something could not be examined.
    Unknown = 2,
    /// Trying again cannot help: an image changed, or things do not belong together.
    Useless = 3,
    /// Another process writes to the file.
    Busy = 4,
}

impl Outcome {
    /// Combines two outcomes. Errors take precedence over things that could not be examined.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Useless, _) | (_, Self::Useless) => Self::Useless,
            (Self::Errors, _) | (_, Self::Errors) => Self::Errors,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Busy, _) | (_, Self::Busy) => Self::Busy,
            (Self::Clean, Self::Clean) => Self::Clean,
        }
    }
}

/// The reason why a command ends early.
pub enum Failure {
    /// The command line is wrong.
    Refused(Refusal),
    /// The output cannot be written.
    Output(std::io::Error),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}

/// Returns the exit status of a command.
pub fn exit(result: Result<Outcome, Failure>) -> ExitCode {
    match result {
        Ok(Outcome::Clean) if messages::is_lost() => ExitCode::from(Outcome::Unknown as u8),
        Ok(outcome) => ExitCode::from(outcome as u8),
        Err(Failure::Refused(Refusal::Usage(lines))) => usage::refuse(&super::called(), &lines),
        Err(Failure::Refused(Refusal::Text(text))) => usage::exit(super::print(&text)),
        Err(Failure::Output(error)) => {
            // The reader closed the pipe on purpose, as head(1) does.
            if error.kind() != ErrorKind::BrokenPipe {
                let reason = messages::reason(&error);
                messages::message(&format!("write error: {reason}"));
            }
            ExitCode::from(Outcome::Unknown as u8)
        }
    }
}
