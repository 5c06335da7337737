//! Finds out how a value without a tag was computed: tries what it can be, likeliest first, until something matches.

use std::borrow::Cow;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::path::Path;

use blkhash::Parameters;
use blkimage::{Format, is_container};
use blksum::expect::{Amount, Candidates, Match, Pass, Search, Subject, Untried, Value};

use super::found::Found;
use super::hash::Job;
use super::recorded;
use super::report::Report;
use super::settings::{Meaning, Settings};
use crate::image::input::{self, Origin};
use crate::image::notes::Notes;
use crate::problem::Problem;
use crate::progress::Reporter;
use crate::value::verdict;

/// A search for the meaning of values that one image may have.
pub struct Searcher<'a> {
    pub name: &'a OsStr,
    pub origin: Origin,
    pub settings: &'a Settings,
    pub search: &'a Search,
    pub notes: Notes,
    pub reporter: &'a Reporter,
}

impl Searcher<'_> {
    /// Searches for the meaning of the first of the values that the image has.
    ///
    /// # Errors
    ///
    /// Fails if the image cannot be read. What fails after the first pass is not tried. Neither is the content if it is
    /// known to be `unreadable`.
    pub fn find(
        &self,
        values: &[Value],
        mut unreadable: Option<Problem>,
    ) -> Result<Found, Problem> {
        let mut candidates = Candidates::new(self.search, values);
        match () {
            () if input::is_read_once(self.name) => candidates.in_one_pass(),
            () if !candidates.has_parts() => {}
            () if !self.is_whole() => candidates.leave_out(Untried::Selection),
            () => candidates.add_parts(input::length(self.name, &self.settings.open)?),
        }
        let (mut first, mut equal) = (None, None);
        while let Some(Pass { subject, parameters }) =
            candidates.next(|pass| self.amount(pass, first.as_ref(), unreadable.is_none()))
        {
            let notes = if first.is_none() { self.notes } else { Notes::Silent };
            let report = match self.checksums(subject, &parameters, values, notes) {
                Ok(report) => report,
                Err(failure) if first.is_none() => {
                    unreadable.get_or_insert(failure);
                    continue;
                }
                Err(failure) => {
                    candidates.leave_out(Untried::Failed(failure.text()));
                    continue;
                }
            };
            let first = first.get_or_insert_with(|| report.clone());
            // An export is what a server makes of a file, like the content of an image.
            let is_raw = report.format == Format::Raw
                && !input::is_export(self.name)
                && !first.is_decompressed;
            let is_of_bytes = subject == Subject::Bytes;
            // What decodes, with its checksums, is no list of digests.
            let shape = report.shape.filter(|_| !(first.is_decompressed && is_of_bytes));
            let doubt = |parameters: &Parameters| {
                Ok(shape.and_then(|shape| shape.doubt(parameters, is_raw || is_of_bytes)))
            };
            let Ok(is_equal) = candidates.take::<Infallible>(subject, &report.checksums, doubt);
            if is_equal {
                equal = Some(report);
            }
        }
        let search = candidates.into_found();
        match (first, unreadable) {
            (Some(first), unreadable) if search.matched.is_some() || unreadable.is_none() => {
                let is_of_bytes = |it: &Match| it.reading.subject == Subject::Bytes;
                let of_bytes = search.matched.filter(is_of_bytes);
                let uncovered = of_bytes.and_then(|_| self.uncovered(&first, unreadable.as_ref()));
                Ok(Found { report: equal.unwrap_or(first), search, uncovered })
            }
            (_, Some(failure)) => Err(failure),
            (_, None) => {
                let reason = search.untried.first().map(verdict::why);
                Err(Problem::new(reason.unwrap_or_else(|| NOTHING_TO_TRY.into())))
            }
        }
    }

    /// Computes checksums.
    fn checksums(
        &self,
        subject: Subject,
        parameters: &[Parameters],
        values: &[Value],
        notes: Notes,
    ) -> Result<Report, Problem> {
        let parameters = Cow::Borrowed(parameters);
        let meaning = match subject {
            Subject::Content => Meaning { parameters, ..self.settings.meaning() },
            Subject::Bytes => Meaning { parameters, ..recorded::of_bytes(self.settings) },
        };
        let meaning = Meaning { sought: values, ..meaning };
        let Self { name, settings, reporter, .. } = *self;
        Job { name, settings, meaning: &meaning, notes, reporter, maps: None, is_only: false }
            .checksums(self.origin)
    }

    /// Returns why a value of the bytes of the file says nothing about its content, of which `report` is.
    fn uncovered(&self, report: &Report, unreadable: Option<&Problem>) -> Option<String> {
        match unreadable {
            // A container holds all of its disks.
            Some(_) if is_container(Path::new(self.name)) => None,
            Some(failure) => Some(format!("it cannot be read: {}", failure.text())),
            None => report.has_other_files.then(|| "it is in other files too".into()),
        }
    }

    /// Returns how much a pass hashes, of an image whose first pass had this report. `None` if the pass is not possible.
    fn amount(&self, pass: &Pass, first: Option<&Report>, is_readable: bool) -> Option<Amount> {
        let is_of_bytes = pass.subject == Subject::Bytes;
        // The bytes of a file may be readable where its content is not.
        let may_be_read = is_readable || (is_of_bytes && self.is_file());
        if !may_be_read {
            return None;
        }
        let Some(first) = first else { return Some(Amount::default()) };
        let is_of_parts = pass.parameters.iter().any(|it| it.construction().has_blocks());
        if is_of_bytes && !is_of_parts && !self.has_bytes(first) {
            return None;
        }
        let (size, stored) = match input::file_size(self.name).filter(|_| is_of_bytes) {
            Some(file) => file,
            None => (first.virtual_size, first.bytes_read),
        };
        Some(Amount { size, zeros: size.saturating_sub(stored) })
    }

    /// Whether the image has a file with other bytes than the content.
    fn has_bytes(&self, first: &Report) -> bool {
        (first.format != Format::Raw || first.is_decompressed) && self.is_file()
    }

    /// Whether all of a file is hashed.
    fn is_file(&self) -> bool {
        self.is_whole() && !input::is_export(self.name) && !input::is_read_once(self.name)
    }

    /// Whether no part of the image was asked for.
    fn is_whole(&self) -> bool {
        self.settings.part.is_none() && self.settings.open.snapshot.is_none()
    }
}

const NOTHING_TO_TRY: &str = "has not this number of parts, if their size is a power of two up to 64 MiB, or as in \
                              --block-size: other parts cannot be checked";
