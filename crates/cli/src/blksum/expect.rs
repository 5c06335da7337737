//! The mode that checks values from elsewhere, which do not record how they were computed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;

use blksum::Tag;
use blksum::expect::{Subject, Value};

use super::expected::Expected;
use super::found::{self, Found, Match, Reading};
use super::hash::Job;
use super::input::{self, Origin};
use super::log::Log;
use super::notes::Notes;
use super::output::{Output, Status, Verdict};
use super::program::PROGRAM;
use super::report::Failure;
use super::search::Searcher;
use super::settings::{self, Settings, Verbosity};
use super::{confine, recorded};
use crate::progress::Reporter;
use crate::{messages, quote};

/// Checks the values. Returns whether all images have theirs.
///
/// # Errors
///
/// Fails if standard output cannot be written.
pub fn run(
    settings: &Settings,
    expect: &settings::Expect,
    output: &mut Output,
) -> io::Result<bool> {
    let log = match expect.log.as_deref().map(Log::read).transpose() {
        Ok(log) => log,
        Err(reason) => {
            messages::message(PROGRAM, &reason);
            return Ok(false);
        }
    };
    confine::hashing(settings, false);
    let reporter = Reporter::new(PROGRAM, settings.progress, Some(settings.names.len() as u64));
    let mut run = Run { settings, expect, reporter, output, all_well: true };
    match log {
        None => {
            for (name, values) in settings.names.iter().zip(&expect.values) {
                run.image(name, values)?;
            }
        }
        Some(log) => run.log(log)?,
    }
    Ok(run.all_well)
}

struct Run<'a> {
    settings: &'a Settings,
    expect: &'a settings::Expect,
    reporter: Reporter,
    output: &'a mut Output,
    all_well: bool,
}

impl Run<'_> {
    /// Checks the values of an image, all of which it must have.
    fn image(&mut self, name: &OsStr, expected: &[Expected]) -> io::Result<()> {
        let name = match self.only_disk(name) {
            Ok(name) => name,
            Err(failure) => return self.fail(name, &failure),
        };
        for expected in expected {
            let found = match &expected.tag {
                Some(tag) => self.tagged(&name, tag, &expected.value),
                None => self.find(&name, std::slice::from_ref(&expected.value)),
            };
            self.reporter.end(&name, None);
            match found {
                Ok(found) => self.verdict(&name, &found, Some(&expected.text), None)?,
                Err(failure) => self.fail(&name, &failure)?,
            }
        }
        Ok(())
    }

    /// Checks that each image has a value of the log.
    fn log(&mut self, mut log: Log) -> io::Result<()> {
        for name in &self.settings.names {
            let name = match self.only_disk(name) {
                Ok(name) => name,
                Err(failure) => {
                    self.fail(name, &failure)?;
                    continue;
                }
            };
            let found = match log.values() {
                [] => Err(Failure::new("the log has no line that is a checksum")),
                values => self.find(&name, values),
            };
            self.reporter.end(&name, None);
            match found {
                Ok(found) => {
                    let line = found.matched.as_ref().map(|it| log.take(it.value));
                    self.verdict(&name, &found, None, line)?;
                }
                Err(failure) => self.fail(&name, &failure)?,
            }
        }
        if self.expect.verbosity != Verbosity::Nothing {
            log.unused(|text| messages::message(PROGRAM, &format!("{}: {text}", log.name())));
        }
        Ok(())
    }

    fn find(&self, name: &OsStr, values: &[Value]) -> Result<Found, Failure> {
        let Self { settings, expect, reporter, .. } = self;
        let (search, notes, origin) = (&expect.search, self.notes(), Origin::CommandLine);
        let is_patient = true;
        Searcher { name, origin, settings, search, notes, reporter, is_patient }.find(values)
    }

    /// Computes the checksum of a line with a tag.
    fn tagged(&self, name: &OsStr, tag: &Tag, value: &Value) -> Result<Found, Failure> {
        let (settings, notes, reporter) = (self.settings, self.notes(), &self.reporter);
        let parameters = recorded::parameters(tag);
        let meaning = recorded::meaning(settings, tag, vec![parameters])?;
        let report = Job { name, settings, meaning: &meaning, notes, reporter, maps: None }
            .checksums(Origin::CommandLine)?;
        let subject = if matches!(tag, Tag::File(_)) { Subject::Bytes } else { Subject::Content };
        let reading = Reading { subject, parameters };
        let is_equal = report.checksums[0].1.as_bytes() == value.digest;
        let matched = is_equal.then_some(Match { value: 0, reading });
        Ok(Found { report, matched, doubted: None, tried: vec![reading], untried: None })
    }

    /// Returns the name of the only disk of an appliance, and every other name as it is.
    fn only_disk(&self, name: &OsStr) -> Result<OsString, Failure> {
        let disks = input::disks((name.to_owned(), Ok(Origin::CommandLine)), &self.settings.open);
        match <[_; 1]>::try_from(disks) {
            Ok([(name, origin)]) => origin.map(|_| name),
            Err(disks) => Err(Failure::new(format!(
                "has {} disks: name one, such as {}",
                disks.len(),
                quote::name(disks[0].0.as_bytes())
            ))),
        }
    }

    fn verdict(
        &mut self,
        name: &OsStr,
        found: &Found,
        expected: Option<&str>,
        line: Option<u64>,
    ) -> io::Result<()> {
        let status = if found.matched.is_some() { Status::Ok } else { Status::Failed };
        self.all_well &= status == Status::Ok;
        if self.is_wanted(status) {
            let verdict = Verdict { found, settings: self.settings, expected, line };
            match self.settings.json {
                true => self.output.verdict_object(name, status, &verdict)?,
                false => self.output.status(name, status, &verdict.note())?,
            }
        }
        if status == Status::Failed && self.expect.verbosity != Verbosity::Nothing {
            self.explain(name, found);
        }
        Ok(())
    }

    /// Says what was tried in vain.
    fn explain(&self, name: &OsStr, found: &Found) {
        let say = |text: &str| messages::message_of(PROGRAM, name.as_bytes(), text);
        match found.doubted {
            Some((reading, doubt)) => say(&found::describe_doubt(&reading, doubt)),
            None => say(&format!("is not {}", found::describe(&found.tried))),
        }
        if let Some(reason) = &found.untried {
            say(&format!("not everything was tried: {reason}"));
        }
        if input::is_target(name) && self.settings.part.is_none() {
            let size = found.report.virtual_size;
            say(&format!(
                "{size} bytes were read: if the image that was copied here is smaller, --length=SIZE \
                 compares only its bytes"
            ));
        }
    }

    fn fail(&mut self, name: &OsStr, failure: &Failure) -> io::Result<()> {
        self.all_well = false;
        messages::message_of(PROGRAM, name.as_bytes(), &failure.reason);
        if !self.is_wanted(Status::Error) {
            return Ok(());
        }
        match self.settings.json {
            true => {
                let content = self.settings.content();
                self.output.error_object(name, failure, &content, Some(Status::Error), b'\n')
            }
            false => self.output.status(name, Status::Error, ""),
        }
    }

    fn is_wanted(&self, status: Status) -> bool {
        match self.expect.verbosity {
            Verbosity::All => true,
            Verbosity::Failures => status != Status::Ok,
            Verbosity::Nothing => false,
        }
    }

    fn notes(&self) -> Notes {
        match self.expect.verbosity {
            Verbosity::All => Notes::Printed,
            Verbosity::Failures => Notes::WarningsOnly,
            Verbosity::Nothing => Notes::Silent,
        }
    }
}
