//! Standard output: lines and JSON objects, each written at once.
//!
//! The methods fail only if writing fails. The run ends with the first such error.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;

use blkhash::{Digest, Parameters, Salt};
use blksum::check_file::{Style, escape};
use blksum::{Content, Part};
use serde::Serialize;

use super::about::About;
use super::recorded;
use super::report::{Failure, Report};
use crate::json::{self, Name};
use crate::quote;
use crate::stdio::Stdout;

/// Standard output.
pub struct Output {
    is_terminal: bool,
}

/// The result for an image in check mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The checksum matches.
    Ok,
    /// The checksum does not match.
    Failed,
    /// The image could not be read.
    Error,
}

impl Output {
    /// Creates the writer. Nothing else in the process may write to standard output.
    pub fn new() -> Self {
        Self { is_terminal: io::stdout().is_terminal() }
    }

    /// Writes `text` as it is.
    pub fn write(&mut self, text: &[u8]) -> io::Result<()> {
        Stdout.write_all(text)
    }

    /// Writes the line of a checksum. On a terminal, an unprintable name is quoted instead of escaped.
    pub fn checksum(&mut self, name: &OsStr, digest: &Digest, style: &Style) -> io::Result<()> {
        let (name, digest) = (name.as_bytes(), digest.as_bytes());
        if !self.is_terminal || !quote::has_controls(name) {
            return self.write(&style.line(name, digest));
        }
        let mut line =
            Style { zero: true, ..style.clone() }.line(quote::name(name).as_bytes(), digest);
        if !style.zero {
            line.pop();
            line.push(b'\n');
        }
        self.write(&line)
    }

    /// Writes the line of an image in check mode. Behind the status is what the line of the check file
    /// records about its content.
    pub fn status(&mut self, name: &OsStr, status: Status, content: &Content) -> io::Result<()> {
        let text = match status {
            Status::Ok => ": OK",
            Status::Failed => ": FAILED",
            Status::Error => ": FAILED open or read",
        };
        let content = match content.is_default() {
            true => String::new(),
            false => format!(" ({})", recorded::describe(content)),
        };
        let name = self.shown(name.as_bytes());
        self.write(&[&name, text.as_bytes(), content.as_bytes(), b"\n"].concat())
    }

    /// Writes the object of one checksum of an image.
    pub fn object(
        &mut self,
        name: &OsStr,
        report: &Report,
        (parameters, digest): &(Parameters, Digest),
        content: &Content,
        status: Option<Status>,
        end: u8,
    ) -> io::Result<()> {
        let has_blocks = parameters.construction().has_blocks();
        let object = Object {
            name: Name::new(name),
            part: PartObject::new(content),
            status,
            checksum: digest.to_string(),
            digest: parameters.algorithm().name(),
            construction: parameters.construction().to_string(),
            block_size: has_blocks.then(|| parameters.block_size()),
            salt: Some(parameters.salt()).filter(|salt| !salt.is_empty()).map(Salt::to_string),
            virtual_size: report.virtual_size,
            format: report.format.name(),
            bytes_read: report.bytes_read,
            seconds: report.elapsed.as_secs_f64(),
            about: report.about.as_ref(),
        };
        self.json(&object, end)
    }

    /// Writes the object of an image that has no checksum.
    pub fn error_object(
        &mut self,
        name: &OsStr,
        failure: &Failure,
        content: &Content,
        status: Option<Status>,
        end: u8,
    ) -> io::Result<()> {
        let (name, part) = (Name::new(name), PartObject::new(content));
        self.json(&ErrorObject { name, part, status, error: &failure.reason }, end)
    }

    fn json(&mut self, object: &impl Serialize, end: u8) -> io::Result<()> {
        let mut line = json::to_vec(object)?;
        line.push(end);
        self.write(&line)
    }

    /// Returns a name for a line of check mode. It is escaped only if it has line breaks, as in sha256sum,
    /// and quoted on a terminal if it is unprintable.
    fn shown<'a>(&self, name: &'a [u8]) -> Cow<'a, [u8]> {
        let shown: Cow<[u8]> = match escape(name) {
            Some(escaped) if name.contains(&b'\n') => [b"\\", &escaped[..]].concat().into(),
            _ => name.into(),
        };
        if self.is_terminal && quote::has_controls(&shown) {
            return quote::name(name).into_bytes().into();
        }
        shown
    }
}

/// The part of an image that was asked for. A whole image has no fields.
#[derive(Default, Serialize)]
struct PartObject<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
}

impl<'a> PartObject<'a> {
    fn new(content: &'a Content) -> Self {
        let whole = Self { snapshot: content.snapshot.as_deref(), ..Self::default() };
        match content.part {
            None => whole,
            Some(Part::Partition(number)) => Self { partition: Some(number), ..whole },
            Some(Part::Range { offset, length }) => Self { offset: Some(offset), length, ..whole },
        }
    }
}

#[derive(Serialize)]
struct Object<'a> {
    #[serde(flatten)]
    name: Name<'a>,
    #[serde(flatten)]
    part: PartObject<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    checksum: String,
    digest: &'static str,
    construction: String,
    block_size: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    salt: Option<String>,
    virtual_size: u64,
    format: &'static str,
    bytes_read: u64,
    seconds: f64,
    #[serde(flatten)]
    about: Option<&'a About>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    #[serde(flatten)]
    name: Name<'a>,
    #[serde(flatten)]
    part: PartObject<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    error: &'a str,
}
