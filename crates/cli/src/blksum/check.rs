//! Check mode: the lines, the messages and the exit status of `sha256sum --check`.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use blkhash::{Algorithm, Construction, DEFAULT_BLOCK_SIZE, Parameters};
use blkimage::{Format, OpenOptions, probe};
use blksum::Tag;
use blksum::check_file::{Entry, Line, MAX_LINE, Parser};

use super::hash::{self, Failure, Notes, Report};
use super::held::{CheckFile, CheckFiles};
use super::output::{Output, Status};
use super::settings::{Check, Settings, Verbosity};
use super::{PROGRAM, confine, hints, input};
use crate::messages;
use crate::sandbox::Sandbox;

/// Checks what the check files say. True if all of it holds; the error is one of writing.
pub fn run(settings: &Settings, check: Check, output: &mut Output) -> io::Result<bool> {
    let algorithm = settings.parameters.algorithm();
    let files = CheckFiles::hold(&settings.names);
    confine::checking(settings, |sandbox| {
        allow_listed(files.contents(), algorithm, check.allow_uri, sandbox);
        files.is_all
    });
    let mut checker = Checker {
        settings,
        check,
        output,
        raw: OpenOptions { format: Some(Format::Raw), snapshot: None, ..settings.open.clone() },
        parser: Parser::new(algorithm),
        line_type: Tag::File(algorithm).to_string(),
    };
    let mut all_well = true;
    for (name, file) in settings.names.iter().zip(files.open(&settings.names)) {
        all_well &= checker.check_file(name, file)?;
    }
    Ok(all_well)
}

/// Allows to read what check files with these contents list, as the checker will take them.
fn allow_listed<'a>(
    contents: impl Iterator<Item = &'a [u8]>,
    algorithm: Algorithm,
    allow_uri: bool,
    sandbox: &mut Sandbox,
) {
    let mut parser = Parser::new(algorithm);
    let mut line = Vec::new();
    for mut content in contents {
        while read_line(&mut content, &mut line).is_ok_and(|length| length > 0) {
            let Line::Entry(entry) = parser.parse(&line) else { continue };
            let name = OsString::from_vec(entry.name);
            match entry.tag {
                _ if input::is_uri(&name) && !allow_uri => {}
                // The bytes of the file itself name no other.
                Some(Tag::File(_)) if name != "-" => sandbox.allow_alone(Path::new(&name)),
                _ => sandbox.allow_name(&name),
            }
        }
    }
}

struct Checker<'a> {
    settings: &'a Settings,
    check: Check,
    output: &'a mut Output,
    /// How the files of plain tags are opened.
    raw: OpenOptions,
    /// One for all files, as sha256sum has it.
    parser: Parser,
    /// What improperly formatted lines should have been.
    line_type: String,
}

/// What became of the lines of a check file.
#[derive(Default)]
struct Counts {
    malformed: u64,
    entries: u64,
    matched: u64,
    mismatched: u64,
    mismatched_without_tag: u64,
    unreadable: u64,
}

impl Checker<'_> {
    fn check_file(&mut self, name: &OsStr, file: io::Result<CheckFile>) -> io::Result<bool> {
        let is_stdin = name == "-";
        let shown = if is_stdin { OsStr::new("standard input") } else { name };
        let file = match file {
            Ok(file) => file,
            Err(error) => {
                say(shown, &messages::reason(&error));
                return Ok(false);
            }
        };
        let mut counts = Counts::default();
        match self.check_lines(file, shown, is_stdin, &mut counts)? {
            End::Reached => {}
            End::ReadError => {
                say(shown, "read error");
                return Ok(false);
            }
            End::EndlessLine => {
                say(shown, "line is too long");
                return Ok(false);
            }
        }
        self.summarise(shown, is_stdin, &counts);
        Ok(counts.entries > 0
            && counts.matched > 0
            && counts.mismatched == 0
            && counts.unreadable == 0
            && (!self.check.strict || counts.malformed == 0))
    }

    fn check_lines(
        &mut self,
        file: CheckFile,
        shown: &OsStr,
        is_stdin: bool,
        counts: &mut Counts,
    ) -> io::Result<End> {
        let mut reader = BufReader::with_capacity(BUFFER_SIZE, file);
        match reader.fill_buf() {
            Ok(head) if probe(head).is_some() => return Ok(End::Reached),
            Ok(_) => {}
            Err(_) => return Ok(End::ReadError),
        }
        let mut line = Vec::new();
        let (mut number, mut bytes) = (0u64, 0u64);
        loop {
            match read_line(&mut reader, &mut line) {
                Ok(0) => return Ok(End::Reached),
                Ok(length) if length > MAX_NONSENSE && counts.entries > 0 => {
                    return Ok(End::EndlessLine);
                }
                Ok(length) => bytes += length,
                Err(_) => return Ok(End::ReadError),
            }
            number += 1;
            match self.parser.parse(&line) {
                Line::Ignored => {}
                Line::Entry(entry) if !(is_stdin && entry.name == b"-") => {
                    counts.entries += 1;
                    self.check_entry(entry, counts)?;
                }
                Line::Entry(_) | Line::Malformed => {
                    counts.malformed += 1;
                    if self.check.warn {
                        let line_type = &self.line_type;
                        say(
                            shown,
                            &format!("{number}: improperly formatted {line_type} checksum line"),
                        );
                    }
                    if counts.entries == 0 && bytes > MAX_NONSENSE {
                        return Ok(End::Reached);
                    }
                }
            }
        }
    }

    fn check_entry(&mut self, entry: Entry, counts: &mut Counts) -> io::Result<()> {
        let name = OsString::from_vec(entry.name);
        match self.compute(&name, entry.tag) {
            Ok(report) if report.digest.as_bytes() == entry.digest => {
                counts.matched += 1;
                self.report(&name, Status::Ok, Ok(&report))
            }
            Ok(report) => {
                counts.mismatched += 1;
                counts.mismatched_without_tag += u64::from(entry.tag.is_none());
                self.report(&name, Status::Failed, Ok(&report))
            }
            Err(failure) if failure.is_missing && self.check.ignore_missing => Ok(()),
            Err(failure) => {
                counts.unreadable += 1;
                messages::message_of(PROGRAM, name.as_bytes(), &failure.reason);
                self.report(&name, Status::Error, Err(&failure))
            }
        }
    }

    fn compute(&self, name: &OsStr, tag: Option<Tag>) -> Result<Report, Failure> {
        if input::is_uri(name) && !self.check.allow_uri {
            return Err(Failure::new(
                "is a URI, which a check file may name only with --allow-uri",
            ));
        }
        let notes = match self.check.verbosity {
            Verbosity::All => Notes::Printed,
            Verbosity::Failures => Notes::WarningsOnly,
            Verbosity::Nothing => Notes::Silent,
        };
        let (parameters, open) = match tag {
            None => (self.settings.parameters, &self.settings.open),
            Some(Tag::Image(parameters)) => (parameters, &self.settings.open),
            Some(Tag::File(algorithm)) => {
                let linear =
                    Parameters::new(algorithm, Construction::Linear, DEFAULT_BLOCK_SIZE as u64);
                (linear.map_err(|error| Failure::new(error.to_string()))?, &self.raw)
            }
        };
        hash::checksum(name, self.settings, &parameters, open, notes)
    }

    fn report(
        &mut self,
        name: &OsStr,
        status: Status,
        result: Result<&Report, &Failure>,
    ) -> io::Result<()> {
        let is_wanted = match self.check.verbosity {
            Verbosity::All => true,
            Verbosity::Failures => status != Status::Ok,
            Verbosity::Nothing => false,
        };
        match result {
            _ if !is_wanted => Ok(()),
            _ if !self.settings.json => self.output.status(name, status),
            Ok(report) => self.output.object(name, report, Some(status), b'\n'),
            Err(failure) => self.output.error_object(name, failure, Some(status), b'\n'),
        }
    }

    fn summarise(&self, shown: &OsStr, is_stdin: bool, counts: &Counts) {
        if counts.entries == 0 {
            say(shown, "no properly formatted checksum lines found");
            if !is_stdin {
                messages::message(PROGRAM, hints::CACHE);
            }
            return;
        }
        if self.check.verbosity == Verbosity::Nothing {
            return;
        }
        let warn = |count: u64, one: &str, many: &str| {
            if count > 0 {
                let what = if count == 1 { one } else { many };
                messages::message(PROGRAM, &format!("WARNING: {count} {what}"));
            }
        };
        warn(counts.malformed, "line is improperly formatted", "lines are improperly formatted");
        warn(counts.unreadable, "listed file could not be read", "listed files could not be read");
        warn(
            counts.mismatched,
            "computed checksum did NOT match",
            "computed checksums did NOT match",
        );
        if self.check.ignore_missing && counts.matched == 0 {
            say(shown, "no file was verified");
        }
        let all_failed = counts.mismatched == counts.entries && counts.mismatched_without_tag > 0;
        let is_raw = self.settings.open.format == Some(Format::Raw);
        if all_failed && let Some(hint) = hints::all_failed(&self.settings.parameters, is_raw) {
            messages::message(PROGRAM, &hint);
        }
    }
}

/// Where reading a check file ended.
enum End {
    Reached,
    ReadError,
    EndlessLine,
}

fn say(shown: &OsStr, text: &str) {
    messages::message_of(PROGRAM, shown.as_bytes(), text);
}

/// Reads a line with its end into `line` and returns its length, 0 at the end of the file. Of a line
/// that is too long only so much is kept that this can be seen; one that is longer than
/// [`MAX_NONSENSE`] is not read to its end.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let limit = MAX_LINE as u64 + 1;
    let length = reader.by_ref().take(limit).read_until(b'\n', line)? as u64;
    if length < limit || line.ends_with(b"\n") {
        return Ok(length);
    }
    Ok(length + reader.by_ref().take(MAX_NONSENSE).skip_until(b'\n')? as u64)
}

const BUFFER_SIZE: usize = 32 << 10;

/// A file that has no checksum in so many bytes is no check file: somebody's disk, perhaps.
const MAX_NONSENSE: u64 = 16 << 20;
