//! Finds out how a value without a tag was computed: tries what it can be, likeliest first, until something matches.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

use blkhash::Parameters;
use blkimage::{Format, is_appliance};
use blksum::expect::{Search, Subject, Value};

use super::found::{Found, Match, Reading};
use super::hash::Job;
use super::input::{self, Origin};
use super::notes::Notes;
use super::recorded;
use super::report::Report;
use super::settings::{Meaning, Settings};
use crate::problem::Problem;
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
    /// Fails if the image cannot be read. What fails after the first pass is not tried. Neither is the content if it is
    /// known to be `unreadable`.
    pub fn find(
        &self,
        values: &[Value],
        mut unreadable: Option<Problem>,
    ) -> Result<Found, Problem> {
        let (mut found, mut untried) = (None::<Found>, Vec::new());
        for (subject, parameters) in self.passes(values, &mut untried)? {
            // The bytes of a file may be readable where its content is not.
            if unreadable.is_some() && (subject == Subject::Content || !self.is_file()) {
                continue;
            }
            let parameters = match &found {
                Some(found) if is_of_bytes(subject, &parameters) && !self.has_bytes(found) => {
                    continue;
                }
                Some(found) => {
                    let amount = self.amount(subject, &found.report);
                    self.budget().within(values, parameters, &amount, &mut untried)
                }
                None => parameters,
            };
            if parameters.is_empty() {
                continue;
            }
            let notes = if found.is_none() { self.notes } else { Notes::Silent };
            let report = match self.checksums(subject, &parameters, values, notes) {
                Ok(report) => report,
                Err(failure) if found.is_none() => {
                    unreadable.get_or_insert(failure);
                    continue;
                }
                Err(failure) => {
                    add(&mut untried, &failure.text());
                    continue;
                }
            };
            let found = found.get_or_insert_with(|| Found::new(report.clone()));
            if subject == Subject::Bytes {
                found.uncovered = self.uncovered(&found.report, unreadable.as_ref());
            }
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
            (_, None) => {
                let reason = untried.into_iter().next();
                Err(Problem::new(reason.unwrap_or_else(|| NOTHING_TO_TRY.into())))
            }
        }
    }

    /// Returns what is tried, one pass after the other.
    ///
    /// # Errors
    ///
    /// Fails if there is a value of parts, and the image cannot be opened.
    fn passes(
        &self,
        values: &[Value],
        untried: &mut Vec<String>,
    ) -> Result<Vec<(Subject, Vec<Parameters>)>, Problem> {
        let passes = self.search.passes(values).into_iter();
        let mut passes: Vec<_> = passes.map(|pass| (pass.subject, pass.parameters)).collect();
        let has_parts = values.iter().any(|value| value.parts.is_some());
        if input::is_read_once(self.name) {
            // All that can be tried of a stream is tried in one pass: what is likely.
            passes.retain(|(subject, _)| *subject == Subject::Content);
            let likely = passes.into_iter().take(2).flat_map(|(_, parameters)| parameters);
            let likely: Vec<_> = likely.collect();
            if has_parts {
                untried
                    .push("a value of parts needs the size of a file, and this is a pipe".into());
            }
            let pass = (!likely.is_empty()).then_some((Subject::Content, likely));
            return Ok(pass.into_iter().collect());
        }
        if has_parts && !self.is_whole() {
            untried.push("a value of parts is of the whole file".into());
        } else if has_parts {
            let length = input::length(self.name, &self.settings.open)?;
            for pass in values.iter().filter_map(|value| self.search.parts(value, length)) {
                if self.search.block_size.is_none()
                    && length > u64::from(pass.parameters[0].block_size())
                {
                    let size = blkbench::text::size(pass.parameters[0].block_size().into());
                    untried.push(format!("parts may have another size than {size}"));
                }
                passes.push((pass.subject, pass.parameters));
            }
        }
        Ok(passes)
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

    fn compare(&self, subject: Subject, values: &[Value], report: Report, found: &mut Found) {
        for (parameters, digest) in &report.checksums {
            let reading = Reading { subject, parameters: *parameters };
            found.tried.push(reading);
            let is_equal = |value: &Value| value.digest == digest.as_bytes();
            let Some(value) = values.iter().position(is_equal) else { continue };
            // An export is what a server makes of a file, like the content of an image.
            let is_decompressed = found.report.is_decompressed;
            let is_raw =
                report.format == Format::Raw && !input::is_uri(self.name) && !is_decompressed;
            let is_file = is_raw || subject == Subject::Bytes;
            // What decodes, with its checksums, is no list of digests.
            let is_sure = self.search.construction.is_some()
                || values[value].parts.is_some()
                || (is_decompressed && subject == Subject::Bytes);
            let doubt = report.shape.and_then(|shape| shape.doubt(parameters, is_file));
            match doubt.filter(|_| !is_sure) {
                None if found.matched.is_none() => found.matched = Some(Match { value, reading }),
                None => {}
                Some(doubt) => found.doubted = Some((reading, doubt)),
            }
        }
        let of_doubted = found.doubted.map(|(reading, _)| reading.parameters);
        let has_doubted = report.checksums.iter().any(|(own, _)| Some(*own) == of_doubted);
        if found.matched.is_some() || has_doubted {
            found.report = report;
        }
    }

    /// Returns why a value of the bytes of the file says nothing about its content, of which `report` is.
    fn uncovered(&self, report: &Report, unreadable: Option<&Problem>) -> Option<String> {
        match unreadable {
            // An appliance holds all of its disks.
            Some(_) if is_appliance(Path::new(self.name)) => None,
            Some(failure) => Some(format!("it cannot be read: {}", failure.text())),
            None => report.has_other_files.then(|| "it is in other files too".into()),
        }
    }

    /// Whether the image has a file with other bytes than the content.
    fn has_bytes(&self, found: &Found) -> bool {
        (found.report.format != Format::Raw || found.report.is_decompressed) && self.is_file()
    }

    /// Whether all of a file is hashed.
    fn is_file(&self) -> bool {
        self.is_whole() && !input::is_uri(self.name) && !input::is_read_once(self.name)
    }

    /// Whether no part of the image was asked for.
    fn is_whole(&self) -> bool {
        self.settings.part.is_none() && self.settings.open.snapshot.is_none()
    }

    fn budget(&self) -> Budget<'_> {
        let has_limit = self.settings.tuning.max_zeros.is_none();
        Budget { search: self.search, is_patient: self.is_patient, has_limit }
    }

    /// Returns how much a pass hashes.
    fn amount(&self, subject: Subject, report: &Report) -> Amount {
        let (size, stored) = match input::file_size(self.name).filter(|_| subject == Subject::Bytes)
        {
            Some(file) => file,
            None => (report.virtual_size, report.bytes_read),
        };
        Amount { subject, size, zeros: size.saturating_sub(stored) }
    }
}

/// How long a search may take.
pub struct Budget<'a> {
    pub search: &'a Search,
    /// Whether unusual digests are tried for large images as well, which takes many times as long as one checksum.
    pub is_patient: bool,
    /// Whether zeros that are not stored are hashed up to a limit only.
    pub has_limit: bool,
}

impl Budget<'_> {
    /// Leaves out what takes too long for a pass over this amount.
    pub fn within(
        &self,
        values: &[Value],
        parameters: Vec<Parameters>,
        amount: &Amount,
        untried: &mut Vec<String>,
    ) -> Vec<Parameters> {
        let usual = self.usual(values, parameters, amount, untried);
        self.affordable(usual, amount, untried)
    }

    /// Leaves out all but the most common digest of a length for large images, unless there is time.
    fn usual(
        &self,
        values: &[Value],
        parameters: Vec<Parameters>,
        amount: &Amount,
        untried: &mut Vec<String>,
    ) -> Vec<Parameters> {
        if self.is_patient || amount.size <= MAX_SIZE {
            return parameters;
        }
        let first = |value: &Value| self.search.digests(value).first().copied();
        let first: Vec<_> = values.iter().filter_map(first).collect();
        let count = parameters.len();
        let usual = parameters.into_iter().filter(|it| first.contains(&it.algorithm()));
        let usual: Vec<_> = usual.collect();
        if usual.len() < count {
            let why = "other digests of this length take long for an image of more than 1 GiB: \
                       --digest names one, and --expect tries all";
            add(untried, why);
        }
        usual
    }

    /// Leaves out what hashes too many zeros that are not stored.
    fn affordable(
        &self,
        parameters: Vec<Parameters>,
        amount: &Amount,
        untried: &mut Vec<String>,
    ) -> Vec<Parameters> {
        if !self.has_limit {
            return parameters;
        }
        let has_blocks = |it: &Parameters| it.construction().has_blocks();
        let blocks = |it: &Parameters| amount.zeros / u64::from(it.block_size());
        let folds: u64 = parameters.iter().filter(|it| has_blocks(it)).map(blocks).sum();
        let linear = parameters.iter().filter(|it| !has_blocks(it)).count() as u64;
        let is_few_folds = folds <= MAX_FOLDS;
        let is_few_zeros = amount.zeros.saturating_mul(linear) <= MAX_ZEROS;
        if !is_few_folds {
            add(untried, "other digests take long for so many zeros: --digest names one");
        }
        if !is_few_zeros {
            let why = match amount.subject {
                Subject::Content => {
                    "linear of so many zeros takes long: --construction linear tries it"
                }
                Subject::Bytes => "the bytes of so large a file take long: -B tries them",
            };
            add(untried, why);
        }
        let is_cheap = |it: &Parameters| if has_blocks(it) { is_few_folds } else { is_few_zeros };
        parameters.into_iter().filter(is_cheap).collect()
    }
}

/// The amount that a pass hashes, in bytes.
pub struct Amount {
    pub subject: Subject,
    pub size: u64,
    /// Zeros that are not stored.
    pub zeros: u64,
}

/// Adds a reason, unless it is known.
fn add(reasons: &mut Vec<String>, reason: &str) {
    if !reasons.iter().any(|known| known == reason) {
        reasons.push(reason.to_owned());
    }
}

/// Whether these are checksums of a file as it is, not of its parts.
fn is_of_bytes(subject: Subject, parameters: &[Parameters]) -> bool {
    subject == Subject::Bytes && parameters.iter().all(|it| !it.construction().has_blocks())
}

const NOTHING_TO_TRY: &str = "has not this number of parts, if their size is a power of two up to 64 MiB, or that of \
                              --block-size: other parts cannot be checked";

/// Size in bytes of an image for which a check file has all digests tried: about half a minute.
const MAX_SIZE: u64 = 1 << 30;

/// Zeros that are not stored and hashed all the same, in bytes, for all digests of a pass together: about half a minute.
const MAX_ZEROS: u64 = 64 << 30;

/// Blocks of zeros whose digests are folded for all checksums of a pass together: about half a minute.
const MAX_FOLDS: u64 = 1 << 29;
