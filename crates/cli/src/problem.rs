//! Why something failed: the message about it, and the exit status.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::ExitCode;

use blkimage::Location;

use crate::image::{advice, names};
use crate::{messages, usage};

/// The reason why work on an image or a map failed.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The name at the beginning of the message, if it is not the one that the caller works on.
    pub about: Option<OsString>,
    pub reason: String,
    /// What to do about it.
    pub hint: Option<Cow<'static, str>>,
    pub cause: Cause,
    pub outcome: Outcome,
}

/// Causes of problems with which commands deal in a way of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The file does not exist.
    Missing,
    /// The name refers to a folder.
    Directory,
    /// A file does not match a digest that is stated with it.
    Digest,
    /// The file violates the rules of its format.
    Damaged,
    Other,
}

/// The outcome of a command, which is its exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was examined and no errors were found.
    Clean = 0,
    /// Errors were found, or a command that does not verify failed.
    Errors = 1,
    /// Something could not be examined.
    Unknown = 2,
    /// Trying again cannot help: an image changed, or things do not belong together.
    Useless = 3,
    /// Another process writes to the file.
    Busy = 4,
}

/// The reason why a command ends early.
pub enum Failure {
    /// The command line is wrong. Each line is a message.
    Usage(Vec<String>),
    /// The output cannot be written.
    Output(io::Error),
    /// Work on what the problem is about failed.
    Problem(Problem),
}

/// Ends a command with a problem.
pub trait WithName {
    type Value;

    /// Says that an error is about `name`, unless it is about another one.
    fn named(self, name: impl AsRef<OsStr>) -> Result<Self::Value, Failure>;
}

impl<T, E: Into<Problem>> WithName for Result<T, E> {
    type Value = T;

    fn named(self, name: impl AsRef<OsStr>) -> Result<T, Failure> {
        self.map_err(|error| Failure::with_name(error.into(), name.as_ref()))
    }
}

impl Problem {
    pub fn new(reason: impl Into<String>) -> Self {
        let (about, hint) = (None, None);
        Self { about, reason: reason.into(), hint, cause: Cause::Other, outcome: Outcome::Unknown }
    }

    /// Converts an error of the image `name`.
    pub fn of_image(error: &blkimage::Error, name: &OsStr) -> Self {
        use blkimage::ErrorKind;
        let is_own = error.name() == Path::new(name) || Location::new(name).shown() == error.name();
        let is_missing = error.io_error().is_some_and(|it| it.kind() == io::ErrorKind::NotFound);
        let cause = match error.kind() {
            ErrorKind::Directory if is_own => Cause::Directory,
            ErrorKind::Open if is_own && is_missing => Cause::Missing,
            _ if error.is_digest_mismatch() => Cause::Digest,
            ErrorKind::Corrupt => Cause::Damaged,
            _ => Cause::Other,
        };
        let outcome = match error.kind() {
            ErrorKind::Changed | ErrorKind::Truncated => Outcome::Useless,
            _ => Outcome::Unknown,
        };
        let reason = advice::reason(error, is_own);
        let meant = || (cause == Cause::Missing).then(|| names::missing(name)).flatten();
        let hint = advice::of_error(error).or_else(|| meant().map(Cow::Owned));
        Self { about: None, reason, hint, cause, outcome }
    }

    /// Converts an error of reading `name` from start to end, as a pipe or by decompressing it.
    pub fn of_stream(error: &io::Error, name: &OsStr) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(error) => Self::of_image(error, name),
            None => Self::from(error),
        }
    }

    /// Converts an error of a pass over the image `name`.
    pub fn of_pass(error: &blksum::Error, name: &OsStr) -> Self {
        match error {
            blksum::Error::Image(error) => Self::of_image(error, name),
            blksum::Error::Stream(error) => Self::of_stream(error, name),
            error => Self { hint: advice::of_pass(error), ..Self::new(error.to_string()) },
        }
    }

    /// Converts an error of a file system in the image `name`.
    pub fn of_btrfs(error: &blkbtrfs::Error, name: &OsStr) -> Self {
        match error {
            blkbtrfs::Error::Image(error) => Self::of_image(error, name),
            error => Self::new(error.to_string()),
        }
    }

    #[must_use]
    pub fn about(self, name: &OsStr) -> Self {
        Self { about: Some(name.to_owned()), ..self }
    }

    #[must_use]
    pub fn with_hint(self, hint: impl Into<Cow<'static, str>>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    #[must_use]
    pub fn with_outcome(self, outcome: Outcome) -> Self {
        Self { outcome, ..self }
    }

    /// Returns the message without the name.
    pub fn text(&self) -> String {
        advice::with_advice(self.reason.clone(), self.hint.clone())
    }

    /// Returns the message about `name`.
    pub fn message(&self, name: &OsStr) -> String {
        let name = self.about.as_deref().unwrap_or(name);
        format!("{}: {}", messages::shown(name.as_encoded_bytes()), self.text())
    }

    /// Prints the message about `name`, or the name that the problem is about. Returns the outcome of the command.
    pub fn report(&self, name: &OsStr) -> Outcome {
        messages::message(&self.message(name));
        self.outcome
    }
}

impl From<&io::Error> for Problem {
    fn from(error: &io::Error) -> Self {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        let cause = if is_missing { Cause::Missing } else { Cause::Other };
        Self { cause, ..Self::new(messages::reason(error)) }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::from(&error)
    }
}

impl From<&blkmap::Error> for Problem {
    fn from(error: &blkmap::Error) -> Self {
        match error {
            blkmap::Error::Io(error) => error.into(),
            blkmap::Error::Sealed => Self::new("is sealed").with_hint("give its --key-file"),
            error => Self::new(error.to_string()),
        }
    }
}

impl From<blkmap::Error> for Problem {
    fn from(error: blkmap::Error) -> Self {
        Self::from(&error)
    }
}

impl From<String> for Problem {
    fn from(reason: String) -> Self {
        Self::new(reason)
    }
}

impl From<&str> for Problem {
    fn from(reason: &str) -> Self {
        Self::new(reason)
    }
}

impl From<Problem> for String {
    fn from(problem: Problem) -> Self {
        problem.text()
    }
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

impl From<bool> for Outcome {
    /// Returns the outcome of a command that does not verify. `is_well` is whether all went well.
    fn from(is_well: bool) -> Self {
        if is_well { Self::Clean } else { Self::Errors }
    }
}

impl Failure {
    /// The command line is wrong for this reason.
    pub fn usage(reason: impl Into<String>) -> Self {
        Self::Usage(vec![reason.into()])
    }

    /// Work on `name` failed, unless the problem is about another one.
    pub fn with_name(mut problem: Problem, name: &OsStr) -> Self {
        problem.about.get_or_insert_with(|| name.to_owned());
        Self::Problem(problem)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Prints why a command ended early, and returns the exit status. `called` returns the command as the user called it.
/// If output or messages are lost, the outcome is `lost`.
pub fn exit(
    result: Result<impl Into<Outcome>, Failure>,
    called: impl FnOnce() -> String,
    lost: Outcome,
) -> ExitCode {
    let outcome = match result.map(Into::into) {
        Ok(Outcome::Clean) if messages::is_lost() => lost,
        Ok(outcome) => outcome,
        Err(Failure::Usage(lines)) => return usage::refuse(&called(), &lines),
        Err(Failure::Problem(problem)) => problem.report(OsStr::new("")),
        Err(Failure::Output(error)) => {
            // The reader closed the pipe on purpose, as head(1) does.
            if error.kind() != io::ErrorKind::BrokenPipe {
                messages::message(&format!("write error: {}", messages::reason(&error)));
            }
            lost
        }
    };
    ExitCode::from(outcome as u8)
}
