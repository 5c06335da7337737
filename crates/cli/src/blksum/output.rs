//! Standard output: lines and JSON objects, each written at once.
//!
//! The methods fail only if writing fails. The run ends with the first such error.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;

use blkhash::{Digest, Parameters, Salt};
use blkrecord::{Flat, Name};
use blksum::check_file::{Style, escape};
use blksum::expect::Subject;
use blksum::{Content, Tag};
use serde::Serialize;

use super::found::Found;
use super::recorded;
use super::report::Report;
use super::settings::Settings;
use crate::problem::Problem;
use crate::records::chain::VpcSizes;
use crate::records::checksum::{self, Checksum, Failed, PartOf, Tried};
use crate::stdio::Stdout;
use crate::{json, quote};

/// Standard output.
pub struct Output {
    is_terminal: bool,
}

/// The result for an image in check mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The checksum matches.
    Ok,
    /// The checksum does not match.
    Failed,
    /// The checksum is equal, and may be that of other content.
    Undecided,
    /// The image could not be read.
    Error,
}

impl Status {
    /// Returns the verdict of a search.
    pub fn of(found: &Found) -> Self {
        match (&found.search.matched, &found.search.doubted) {
            (Some(_), _) => Self::Ok,
            (None, Some(_)) => Self::Undecided,
            (None, None) => Self::Failed,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Undecided => "undecided",
            Self::Error => "error",
        }
    }
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
        let line = quote::line(style, name.as_bytes(), digest.as_bytes(), self.is_terminal);
        self.write(&line)
    }

    /// Writes the line of an image in check mode. Behind the status is a note, if it is not empty.
    pub fn status(&mut self, name: &OsStr, status: Status, note: &str) -> io::Result<()> {
        let text = match status {
            Status::Ok => ": OK",
            Status::Failed => ": FAILED",
            Status::Undecided => ": FAILED to decide",
            Status::Error => ": FAILED open or read",
        };
        let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
        let name = self.shown(name.as_bytes());
        self.write(&[&name, text.as_bytes(), note.as_bytes(), b"\n"].concat())
    }

    /// Writes the object of an image whose value was searched for.
    pub fn verdict_object(
        &mut self,
        name: &OsStr,
        status: Status,
        verdict: &Verdict<'_>,
    ) -> io::Result<()> {
        let Verdict { found, settings, expected, tag, line } = *verdict;
        let reading = found.search.matched.as_ref().map(|matched| &matched.reading);
        let parameters = reading.map(|reading| &reading.parameters);
        let (report, content) = (&found.report, recorded::content(settings, tag));
        let object = checksum::Verdict {
            name: Name::new(name),
            part: Flat(PartOf::new(&content)),
            status: status.name(),
            expected,
            line,
            digest: parameters.map(|it| it.algorithm().name()),
            construction: parameters.map(|it| it.construction().to_string()),
            block_size: parameters.and_then(checksum::block_size),
            bytes: reading.map(|reading| reading.subject == Subject::Bytes),
            tag_line: reading.and_then(|it| recorded::line(name, settings, report, it, tag)),
            tried: found.search.tried.iter().map(Tried::new).collect(),
            reasons: if found.search.matched.is_some() { Vec::new() } else { found.reasons() },
            uncovered: found.uncovered.as_deref().filter(|_| found.search.matched.is_some()),
            virtual_size: report.virtual_size,
            format: report.format.name(),
            bytes_read: report.bytes_read,
            seconds: report.elapsed.as_secs_f64(),
        };
        self.json(&object, b'\n')
    }

    /// Writes the object of one checksum of an image.
    pub fn object(
        &mut self,
        name: &OsStr,
        report: &Report,
        checksum: &(Parameters, Digest),
        content: &Content,
        status: Option<Status>,
        end: u8,
    ) -> io::Result<()> {
        let object = object(name, report, checksum, content);
        self.json(&Checksum { status: status.map(Status::name), ..object }, end)
    }

    /// Writes the object of a digest of the bytes of a file.
    pub fn object_of_bytes(
        &mut self,
        name: &OsStr,
        report: &Report,
        checksum: &(Parameters, Digest),
        content: &Content,
        end: u8,
    ) -> io::Result<()> {
        self.json(&Checksum { bytes: true, ..object(name, report, checksum, content) }, end)
    }

    /// Writes the object of an image that has no checksum.
    pub fn error_object(
        &mut self,
        name: &OsStr,
        problem: &Problem,
        content: &Content,
        status: Option<Status>,
        end: u8,
    ) -> io::Result<()> {
        let object = Failed {
            name: Name::new(name),
            part: Flat(PartOf::new(content)),
            status: status.map(Status::name),
            error: problem.text(),
        };
        self.json(&object, end)
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

/// The result of a search for a value.
pub struct Verdict<'a> {
    pub found: &'a Found,
    pub settings: &'a Settings,
    /// The value as it was typed.
    pub expected: Option<&'a str>,
    /// The tag of the value, if it has one.
    pub tag: Option<&'a Tag>,
    /// Number of the line in the log.
    pub line: Option<u64>,
}

impl Verdict<'_> {
    /// Describes how the value was computed, and where it stands.
    pub fn note(&self) -> String {
        let reading = self.found.search.matched.as_ref().map(|matched| matched.reading.to_string());
        let content = match self.tag {
            Some(Tag::Image(tag)) => Some(recorded::describe(&tag.content)),
            _ => None,
        };
        let content = content.filter(|text| !text.is_empty());
        let line = self.line.map(|line| format!("line {line}"));
        reading.into_iter().chain(content).chain(line).collect::<Vec<_>>().join(", ")
    }
}

fn object<'a>(
    name: &'a OsStr,
    report: &'a Report,
    (parameters, digest): &(Parameters, Digest),
    content: &'a Content,
) -> Checksum<'a> {
    Checksum {
        name: Name::new(name),
        part: Flat(PartOf::new(content)),
        status: None,
        checksum: digest.to_string(),
        digest: parameters.algorithm().name(),
        construction: parameters.construction().to_string(),
        bytes: false,
        block_size: checksum::block_size(parameters),
        salt: Some(parameters.salt()).filter(|salt| !salt.is_empty()).map(Salt::to_string),
        virtual_size: report.virtual_size,
        vpc_sizes: report.vpc_sizes.map(VpcSizes::new),
        format: report.format.name(),
        bytes_read: report.bytes_read,
        seconds: report.elapsed.as_secs_f64(),
        implanted: report.implanted.as_ref(),
        sums: report.sums.as_ref(),
        about: Flat(report.about.as_ref()),
    }
}
