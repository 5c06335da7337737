//! Errors and warnings of images, and what to type instead. Both commands have these words.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

use blkimage::{ErrorKind, Hint, Image, Location, Way, container_of};
use rustix::io::Errno;

use crate::image::option::say;
use crate::{messages, quote};

/// Prints the warnings of an image that was opened by this name.
pub fn warn(image: &Image, name: &OsStr) {
    for warning in image.warnings() {
        let text = match warning.file == Path::new(name) {
            true => warning.reason.clone(),
            false => warning.to_string(),
        };
        let advice = warning.hint.map(|hint| of_hint(hint, name).into());
        let text = format!("warning: {}", with_advice(text, advice));
        messages::message_of(name.as_encoded_bytes(), &text);
    }
}

/// Returns the reason of an error. The name of the file is left out if it is the one that the message begins with.
pub fn reason(error: &blkimage::Error, is_own: bool) -> String {
    let denied = if is_denied_by_sandbox(error) { ", by the sandbox" } else { "" };
    let source = error.io_error().map(|source| messages::reason(source) + denied);
    let reason = match (error.kind(), is_own) {
        (ErrorKind::Directory, true) => return "Is a directory".into(),
        (ErrorKind::Open, true) if source.is_some() => return source.unwrap_or_default(),
        (_, false) => error.to_string(),
        (_, true) => match error.offset() {
            Some(offset) => format!("{} (offset {offset})", error.reason()),
            None => error.reason().to_owned(),
        },
    };
    match source {
        Some(source) => format!("{reason}: {source}"),
        None => reason,
    }
}

/// Returns whether the sandbox denies a file that the user may read.
fn is_denied_by_sandbox(error: &blkimage::Error) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    let is_denied = error.io_error().and_then(Errno::from_io_error) == Some(Errno::ACCESS);
    let is_permitted = || accessat(CWD, error.name(), Access::READ_OK, AtFlags::EACCESS).is_ok();
    error.kind() == ErrorKind::Open && is_denied && is_permitted()
}

/// Returns whether the sandbox may deny connecting to the server of a URL. The system has this error for little else.
fn is_port_refused(error: &blkimage::Error) -> bool {
    Location::new(error.name().as_os_str()).is_url() && error.reason().contains("Permission denied")
}

/// Adds advice to a reason.
pub fn with_advice(reason: String, advice: Option<Cow<'static, str>>) -> String {
    match advice {
        Some(advice) => format!("{reason}: {advice}"),
        None => reason,
    }
}

/// Returns what to do about an error.
pub fn of_error(error: &blkimage::Error) -> Option<Cow<'static, str>> {
    let cause = error.io_error().and_then(Errno::from_io_error);
    // The sandbox gives EACCES for files and programs. EPERM has other causes, except for a socket to a
    // server.
    let is_refused = matches!(cause, Some(Errno::ACCESS | Errno::PERM));
    match error.kind() {
        ErrorKind::Server if is_refused => Some(DENIED_PROGRAM.into()),
        ErrorKind::Connect if is_port_refused(error) => Some(DENIED_PORT.into()),
        _ if is_denied_by_sandbox(error) => Some(match messages::program() {
            "blksum" => "--verbose shows what it allows, --no-sandbox disables it".into(),
            _ => "--no-sandbox disables it".into(),
        }),
        _ => error.hint().map(|hint| of_hint(hint, error.name().as_os_str()).into()),
    }
}

/// Returns what to do about an error of a pass over an image, besides its own description.
pub fn of_pass(error: &blksum::Error) -> Option<Cow<'static, str>> {
    match error {
        blksum::Error::Image(error) => of_error(error),
        blksum::Error::Zeros { .. } => Some(of_hint(Hint::MaxZeros, OsStr::new("-")).into()),
        _ => None,
    }
}

/// Returns what to do about an error of writing to a server.
pub fn of_io(error: &io::Error) -> Option<String> {
    Hint::of_io(error).map(|hint| of_hint(hint, OsStr::new("-")))
}

/// Returns what to do about the file `name`.
fn of_hint(hint: Hint, name: &OsStr) -> String {
    let is_file = name != "-" && container_of(Path::new(name)).is_none();
    let file = if is_file { quote::name(name.as_encoded_bytes()) } else { "FILE".to_owned() };
    // These commands read what the other one writes.
    let verb = match messages::program() {
        "blkcopy" => Some("| blkcopy - DESTINATION copies it"),
        "blksum" => Some("| blksum hashes it"),
        _ => None,
    };
    hint.describe(say, |way| match (way, verb) {
        (Way::Pipe(command), Some(verb)) => {
            Some(format!("{} {verb}", command.replace("FILE", &file)))
        }
        (way, _) => way.describe(&file),
    })
}

const DENIED_PORT: &str = "the sandbox allows the ports of the URLs that were given, 80 and 443: --no-sandbox disables it";

const DENIED_PROGRAM: &str =
    "if it is executable, the sandbox may prevent it: name the program with --nbd-server=PROGRAM";
