//! Finds out how a value without a tag was computed: tries what it can be, likeliest first, until something matches.

use std::borrow::Cow;
use std::ffi::OsStr;

use blkhash::Parameters;
use blkimage::Format;
use blksum::expect::{Search, Subject, Value};

use super::found::{Found, Match, Reading};
use super::hash::Job;
use super::input::{self, Origin};
use super::notes::Notes;
use super::recorded;
use super::report::{Failure, Report};
use super::settings::{Meaning, Settings};
use crate::progress::Reporter;

/// A search for the meaning of values that one image may have.
pub struct Searcher<'a> {
    pub name: &'a OsStr,
    pub origin: Origin,
    pub settings: &'a Settings,
    pub search: &'a Search,
    pub notes: Notes,
    pub reporter: &'a Reporter,
    /// Whether unusual digests are tried for large images as well, which takes many times as long as one checksum.
    pub is_patient: bool,
}

impl Searcher<'_> {
    /// Searches for the meaning of the first of the values that the image has.
    ///
    /// # Errors
    ///
    /// Fails if the image cannot be read. What fails after the first pass is not tried.
    pub fn find(&self, values: &[Value]) -> Result<Found, Failure> {
        let mut found: Option<Found> = None;
        let (mut untried, mut unreadable) = (None, None);
        for (subject, parameters) in self.passes(values) {
            // The bytes of a file may be readable where its content is not.
            if unreadable.is_some() && (subject == Subject::Content || !self.is_file()) {
                continue;
            }
            let parameters = match &found {
                Some(found) if is_of_bytes(subject, &parameters) && !self.has_bytes(found) => {
                    continue;
                }
                Some(found) => {
                    let usual = self.usual(values, parameters, &found.report, &mut untried);
                    self.affordable(usual, &found.report, &mut untried)
                }
                None => parameters,
            };
            if parameters.is_empty() {
                continue;
            }
            let notes = if found.is_none() { self.notes } else { Notes::Silent };
            let report = match self.checksums(subject, &parameters, notes) {
                Ok(report) => report,
                Err(failure) if found.is_none() => {
                    unreadable.get_or_insert(failure);
                    continue;
                }
                Err(failure) => {
                    untried = Some(failure.reason);
                    continue;
                }
            };
            let found = found.get_or_insert_with(|| Found {
                report: report.clone(),
                matched: None,
                doubted: None,
                tried: Vec::new(),
                untried: None,
            });
            self.compare(subject, values, report, found);
            // A value has no second meaning.
            let is_over = found.doubted.is_some() && values.len() == 1;
            if found.matched.is_some() || is_over {
                break;
            }
        }
        match (found, unreadable) {
            (Some(found), unreadable) if found.matched.is_some() || unreadable.is_none() => {
                Ok(Found { untried, ..found })
            }
            (_, Some(failure)) => Err(failure),
            (_, None) => Err(Failure::new(NOTHING_TO_TRY)),
        }
    }

    /// Returns what is tried, one pass after the other.
    fn passes(&self, values: &[Value]) -> Vec<(Subject, Vec<Parameters>)> {
        let passes = self.search.passes(values).into_iter();
        let mut passes: Vec<_> = passes.map(|pass| (pass.subject, pass.parameters)).collect();
        if input::is_read_once(self.name) {
            // All that can be tried of a stream is tried in one pass: what is likely.
            passes.retain(|(subject, _)| *subject == Subject::Content);
            let likely =
                passes.into_iter().take(2).flat_map(|(_, parameters)| parameters).collect();
            return vec![(Subject::Content, likely)];
        }
        let length = std::fs::metadata(self.name).map_or(0, |metadata| metadata.len());
        let parts = values.iter().filter_map(|value| self.search.parts(value, length));
        passes.extend(parts.map(|pass| (pass.subject, pass.parameters)));
        passes
    }

    /// Computes checksums.
    fn checksums(
        &self,
        subject: Subject,
        parameters: &[Parameters],
        notes: Notes,
    ) -> Result<Report, Failure> {
        let parameters = Cow::Borrowed(parameters);
        let meaning = match subject {
            Subject::Content => Meaning { parameters, ..self.settings.meaning() },
            Subject::Bytes => Meaning { parameters, ..recorded::of_bytes(self.settings) },
        };
        let meaning = Meaning { is_search: true, ..meaning };
        let Self { name, settings, reporter, .. } = *self;
        Job { name, settings, meaning: &meaning, notes, reporter, maps: None }
            .checksums(self.origin)
    }

    fn compare(&self, subject: Subject, values: &[Value], report: Report, found: &mut Found) {
        for (parameters, digest) in &report.checksums {
            let reading = Reading { subject, parameters: *parameters };
            found.tried.push(reading);
            let is_equal = |value: &Value| value.digest == digest.as_bytes();
            let Some(value) = values.iter().position(is_equal) else { continue };
            let is_raw = report.format == Format::Raw || subject == Subject::Bytes;
            let is_sure = self.search.construction.is_some() || values[value].parts.is_some();
            let doubt = report.shape.and_then(|shape| shape.doubt(parameters, is_raw));
            match doubt.filter(|_| !is_sure) {
                None if found.matched.is_none() => found.matched = Some(Match { value, reading }),
                None => {}
                Some(doubt) => found.doubted = Some((reading, doubt)),
            }
        }
        if found.matched.is_some() {
            found.report = report;
        }
    }

    /// Whether the image has a file with other bytes than the content.
    fn has_bytes(&self, found: &Found) -> bool {
        found.report.format != Format::Raw && self.is_file()
    }

    /// Whether all of a file is hashed.
    fn is_file(&self) -> bool {
        let is_part = self.settings.part.is_some() || self.settings.open.snapshot.is_some();
        !is_part && !input::is_uri(self.name) && !input::is_read_once(self.name)
    }

    /// Leaves out all but the most common digest of a length for large images, unless there is time.
    fn usual(
        &self,
        values: &[Value],
        parameters: Vec<Parameters>,
        report: &Report,
        untried: &mut Option<String>,
    ) -> Vec<Parameters> {
        if self.is_patient || report.virtual_size <= MAX_SIZE {
            return parameters;
        }
        let first = |value: &Value| self.search.digests(value).first().copied();
        let first: Vec<_> = values.iter().filter_map(first).collect();
        let count = parameters.len();
        let usual = parameters.into_iter().filter(|it| first.contains(&it.algorithm()));
        let usual: Vec<_> = usual.collect();
        if usual.len() < count {
            let reason = "other digests of this length take long for an image of more than 1 GiB: \
                          --digest names one, and --expect tries all";
            *untried = Some(reason.into());
        }
        usual
    }

    /// Leaves out what hashes too many zeros that the image does not store.
    fn affordable(
        &self,
        parameters: Vec<Parameters>,
        report: &Report,
        untried: &mut Option<String>,
    ) -> Vec<Parameters> {
        let linear = parameters.iter().filter(|it| !it.construction().has_blocks()).count() as u64;
        let zeros = report.virtual_size.saturating_sub(report.bytes_read);
        let zeros = zeros.saturating_mul(linear);
        let (is_given, is_few) = (self.settings.tuning.max_zeros.is_some(), zeros <= MAX_ZEROS);
        let is_cheap = |it: &Parameters| is_given || is_few || it.construction().has_blocks();
        let count = parameters.len();
        let cheap: Vec<_> = parameters.into_iter().filter(is_cheap).collect();
        if cheap.len() < count {
            let zeros = zeros >> 30;
            *untried = Some(format!(
                "linear would hash {zeros} GiB of zeros that are not stored: --construction linear tries it"
            ));
        }
        cheap
    }
}

/// Whether these are checksums of a file as it is, not of its parts.
fn is_of_bytes(subject: Subject, parameters: &[Parameters]) -> bool {
    subject == Subject::Bytes && parameters.iter().all(|it| !it.construction().has_blocks())
}

const NOTHING_TO_TRY: &str = "cannot have this value: no size of a part up to 64 MiB, a power of two, gives this \
                              number of parts";

/// Size in bytes of an image for which a check file has all digests tried: about half a minute.
const MAX_SIZE: u64 = 1 << 30;

/// Zeros that are not stored and hashed all the same, in bytes, for all digests of a pass together: about half a minute.
const MAX_ZEROS: u64 = 64 << 30;
