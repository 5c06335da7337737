//! The mode that checks values from elsewhere, which do not record how they were computed.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

use blksum::Tag;
use blksum::expect::{self, Match, Reading, Subject, Value};

use super::found::Found;
use super::hash::Job;
use super::log::Log;
use super::output::{Output, Status, Verdict};
use super::search::Searcher;
use super::settings::{self, Settings, Verbosity};
use super::{confine, recorded};
use crate::image::input;
use crate::image::notes::Notes;
use crate::messages;
use crate::problem::Problem;
use crate::progress::Reporter;
use crate::value::expected::Expected;
use crate::value::{stored, verdict};

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
            messages::message(&reason);
            return Ok(false);
        }
    };
    confine::hashing(settings, false);
    let reporter = Reporter::new(settings.progress, Some(settings.names.len() as u64));
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
        for expected in expected {
            let asked = expected.is_stored.then(|| stored::ask(name, &self.settings.open));
            let asked = match asked.transpose() {
                Ok(asked) => asked,
                Err(failure) => {
                    self.fail(name, &failure)?;
                    continue;
                }
            };
            let Expected { text, value, tag, .. } = asked.as_ref().unwrap_or(expected);
            let found = match tag {
                Some(tag) => self.tagged(name, tag, value),
                None => self.find(name, std::slice::from_ref(value)),
            };
            self.reporter.end(name, None);
            self.verdict(name, found, Some(text), tag.as_ref(), None)?;
        }
        Ok(())
    }

    /// Checks that each image has a value of the log.
    fn log(&mut self, mut log: Log) -> io::Result<()> {
        for name in &self.settings.names {
            let found = self.find(name, log.values());
            self.reporter.end(name, None);
            let matched = found.as_ref().ok().and_then(|found| found.search.matched.as_ref());
            let taken = matched.map(|it| log.take(it.value, name));
            let (line, text) = taken.unzip();
            self.verdict(name, found, text.as_deref(), None, line)?;
        }
        let say = |text: &str| messages::message(&format!("{}: {text}", log.name()));
        if self.expect.verbosity != Verbosity::Nothing {
            log.shared().iter().for_each(|text| say(text));
        }
        if self.expect.verbosity == Verbosity::All {
            log.unused().iter().for_each(|text| say(text));
        }
        Ok(())
    }

    fn find(&self, name: &OsStr, values: &[Value]) -> Result<Found, Problem> {
        let Self { settings, expect, reporter, .. } = self;
        let (search, notes, origin) = (&expect.search, self.notes(), settings.origin);
        Searcher { name, origin, settings, search, notes, reporter }.find(values, None)
    }

    /// Computes the checksum of a line with a tag.
    fn tagged(&self, name: &OsStr, tag: &Tag, value: &Value) -> Result<Found, Problem> {
        let (settings, notes, reporter) = (self.settings, self.notes(), &self.reporter);
        if recorded::excludes_part(settings, Some(tag)) {
            return Err(Problem::new(recorded::WHOLE_FILE));
        }
        let parameters = recorded::parameters(tag);
        let meaning = recorded::meaning(settings, tag, vec![parameters])?;
        let report =
            Job { name, settings, meaning: &meaning, notes, reporter, maps: None, is_only: false }
                .checksums(settings.origin)?;
        let subject = if matches!(tag, Tag::File(_)) { Subject::Bytes } else { Subject::Content };
        let reading = Reading::of(subject, parameters);
        let is_equal = report.checksums[0].1.as_bytes() == value.digest;
        let mut search = expect::Found::default();
        search.matched = is_equal.then_some(Match { value: 0, reading });
        search.tried.push(reading);
        Ok(Found { report, search, uncovered: None })
    }

    fn verdict(
        &mut self,
        name: &OsStr,
        found: Result<Found, Problem>,
        expected: Option<&str>,
        tag: Option<&Tag>,
        line: Option<u64>,
    ) -> io::Result<()> {
        let found = &match found {
            Ok(found) => found,
            Err(failure) => return self.fail(name, &failure),
        };
        let status = Status::of(found);
        self.all_well &= status == Status::Ok;
        if self.is_wanted(status) {
            let verdict = Verdict { found, settings: self.settings, expected, tag, line };
            match self.settings.json {
                true => self.output.verdict_object(name, status, &verdict)?,
                false => self.output.status(name, status, &verdict.note())?,
            }
        }
        if self.expect.verbosity != Verbosity::Nothing {
            self.explain(name, found, tag);
        }
        Ok(())
    }

    /// Says what was tried in vain, or what a value does not cover.
    fn explain(&self, name: &OsStr, found: &Found, tag: Option<&Tag>) {
        let say = |text: &str| messages::message_of(name.as_bytes(), text);
        if found.search.matched.is_some() {
            found.uncovered.iter().for_each(|why| say(&verdict::describe_uncovered(why)));
            return;
        }
        let is_doubted = found.search.doubted.is_some();
        if !is_doubted {
            say(&format!("does not match as {}", found.search.describe_tried()));
        }
        found.reasons().iter().for_each(|reason| say(reason));
        let recorded = recorded::content(self.settings, tag).vpc_size;
        let chosen = recorded.unwrap_or(self.settings.open.vpc_size);
        found.report.other_vpc_size(chosen).iter().for_each(|other| say(other));
        if !is_doubted && input::is_target(name) && self.settings.part.is_none() {
            let size = found.report.virtual_size;
            say(&format!(
                "{size} bytes were read: if the image that was copied here is smaller, --length=SIZE \
                 compares only its bytes"
            ));
        }
    }

    fn fail(&mut self, name: &OsStr, failure: &Problem) -> io::Result<()> {
        self.all_well = false;
        failure.report(name);
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
