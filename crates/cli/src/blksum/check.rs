//! Check mode, with the lines, messages and exit status of `sha256sum --check`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::slice;
use std::sync::OnceLock;

use blkhash::{Algorithm, Construction, Digest, Parameters};
use blkimage::{Format, Location, container_of, is_beside_url, is_container};
use blksandbox::Sandbox;
use blksum::check_file::{self, Binary, Entry, Mistake, Parser};
use blksum::expect::{self, Reading, Value, untried_of_size};
use blksum::{Content, Tag};

use super::check_files::{CheckFiles, Held};
use super::found::Found;
use super::groups::{self, Groups, Subject, Wanted};
use super::hash::{self, Job};
use super::lines::{self, End, Item, Lines};
use super::output::{Output, Status};
use super::report::Report;
use super::search::Searcher;
use super::settings::{Check, Meaning, Settings, Verbosity};
use super::small::Small;
use super::stated::SelfCheck;
use super::{beside, confine, hints, implanted, recorded, sums};
use crate::image::input::{self, Origin};
use crate::image::notes::Notes;
use crate::messages;
use crate::problem::{Cause, Problem};
use crate::progress::Reporter;
use crate::value::verdict;

/// Checks the images listed in the check files. Returns whether every check file passed.
///
/// # Errors
///
/// Fails if standard output cannot be written.
pub fn run(settings: &Settings, check: &Check, output: &mut Output) -> io::Result<bool> {
    let given = settings.parameters[0];
    let algorithm = given.algorithm();
    let parser = match &check.search {
        _ if check.bytes => Parser::of_files(algorithm),
        Some(search) if search.algorithms.is_empty() => Parser::of_any(algorithm),
        _ => Parser::new(algorithm),
    };
    let files = CheckFiles::hold(&settings.names, &settings.open);
    confine::checking(settings, |sandbox| {
        allow_listed(files.contents(), parser.clone(), check.allow_uri, sandbox);
        files.read_later().for_each(|path| sandbox.allow_alone(path));
        files.images().for_each(|path| sandbox.allow_image(path));
        files.is_all
    });
    let files = files.with_later(settings);
    let small = Small::new(settings);
    // No look-ahead in a file that may still be written, because it would wait for the next line.
    let threads = if files.may_wait(&settings.names) { 1 } else { small.threads() };
    // Lines that are not held yet may belong to any group.
    let groups = match files.is_all {
        true => Groups::new(files.contents(), parser.clone()),
        false => Groups::none(),
    };
    let reporter =
        Reporter::new(settings.progress, groups.lines().map(|lines| lines + files.reads()));
    let images = Images { settings, check, given, likely: OnceLock::new(), small, reporter };
    let mut checker = Checker {
        images: &images,
        output,
        line_type: Tag::File(algorithm).to_string(),
        names: settings.names.iter(),
        counts: Counts::default(),
        known: HashMap::new(),
        has_read_pipe: false,
        has_noted_size: settings.open.format.is_some(),
        has_noted_target: false,
        all_well: true,
    };
    let names = settings.names.iter().map(OsString::as_os_str);
    let lines = Lines::new(names.zip(files.open(&settings.names, settings)), parser);
    let ahead = |(item, wanted): &(Item, Wanted)| match item {
        Item::Entry(_) if *wanted == Wanted::Nothing => Some(None),
        Item::Entry(entry) => images.checksums_ahead(entry, wanted).map(Some),
        Item::Malformed { .. } | Item::Read(_) | Item::End(_) => Some(None),
    };
    let take = |(item, wanted), early: Option<_>| checker.take(item, &wanted, early.flatten());
    blksum::in_order(threads, groups.assign(lines), ahead, take)?;
    Ok(checker.all_well)
}

/// Allows reading the images that are listed in check files with these contents.
fn allow_listed<'a>(
    contents: impl Iterator<Item = Held<'a>>,
    parser: Parser,
    allow_uri: bool,
    sandbox: &mut Sandbox,
) {
    for entry in lines::entries(contents, parser) {
        let name = OsString::from_vec(entry.name);
        if let Some(map) = beside::map_of(&name).filter(|map| beside::is_there(map)) {
            sandbox.allow_alone(Path::new(&map));
        }
        match entry.tag {
            _ if input::is_uri(&name) && !allow_uri => {}
            // The file is read as raw bytes, so it cannot refer to other files.
            Some(Tag::File(_)) if name != "-" => sandbox.allow_alone(Path::new(&name)),
            _ => sandbox.allow_name(&name),
        }
    }
}

/// Computes the checksums of listed images.
struct Images<'a> {
    settings: &'a Settings,
    check: &'a Check,
    /// Parameters for lines without a tag.
    given: Parameters,
    /// Parameters that an earlier line without a tag turned out to have. They are computed in the same pass.
    likely: OnceLock<Parameters>,
    small: Small,
    reporter: Reporter,
}

/// Compares an image with what it states. Returns where it differs, if it does.
type CheckParts =
    fn(&OsStr, &Settings, Notes, &Reporter) -> Result<(Report, Option<String>), Problem>;

struct Checker<'a> {
    images: &'a Images<'a>,
    output: &'a mut Output,
    /// Type of checksum line that messages about malformed lines name.
    line_type: String,
    /// Names of the check files that are left. The first is being read.
    names: slice::Iter<'a, OsString>,
    /// Results for the lines of this file.
    counts: Counts,
    /// Reports of images that several lines name.
    known: HashMap<Subject, Report>,
    /// Whether the pipe on standard input was read.
    has_read_pipe: bool,
    /// Whether notes on odd sizes are done: one was printed, or a format was given.
    has_noted_size: bool,
    /// Whether the note on the size of a device was printed.
    has_noted_target: bool,
    all_well: bool,
}

/// Counts of results for the lines of a check file.
#[derive(Default)]
struct Counts {
    malformed: u64,
    /// The first malformed line of a known kind, with its number.
    mistake: Option<(u64, Mistake)>,
    /// Number of malformed lines that have the tag of an image.
    unknown: u64,
    entries: u64,
    matched: u64,
    mismatched: u64,
    /// Number of lines whose checksum is equal, and may be that of other content.
    undecided: u64,
    unreadable: u64,
    /// Whether a file that is missing is in the folder of the check file.
    is_beside: bool,
    untagged: Untagged,
}

/// Counts of results for the lines without a tag.
#[derive(Default)]
struct Untagged {
    matched: u64,
    mismatched: u64,
    /// Number of digits of the first line with too many or too few.
    digits: Option<usize>,
    /// The readings that were tried for the first line that did not match.
    tried: Option<String>,
    /// Digests of the length of that line that are not tried, because they can be forged.
    forgeable: Vec<Algorithm>,
    /// Whether the note about what lines were found to be was printed.
    is_noted: bool,
}

impl Images<'_> {
    fn checksums_ahead(&self, entry: &Entry, wanted: &Wanted) -> Option<Result<Report, Problem>> {
        let name = OsStr::from_bytes(&entry.name);
        if self.excludes_part(entry) || self.is_of_another_digest(entry) {
            return None;
        }
        self.small.checksums(name, &self.meaning(entry, wanted).ok()?)
    }

    fn checksums(&self, entry: &Entry, wanted: &Wanted) -> Result<Report, Problem> {
        let name = OsStr::from_bytes(&entry.name);
        self.check_allowed(entry)?;
        let meaning = self.meaning(entry, wanted)?;
        let (settings, notes, reporter) = (self.settings, self.notes(), &self.reporter);
        Job { name, settings, meaning: &meaning, notes, reporter, maps: None, is_only: false }
            .checksums(Origin::Listed)
    }

    /// Refuses names that a check file may not have.
    fn check_allowed(&self, entry: &Entry) -> Result<(), Problem> {
        let name = OsStr::from_bytes(&entry.name);
        if input::is_uri(name) && !self.check.allow_uri && !self.is_beside_list(name) {
            return Err(Problem::new(
                "is a URI, which a check file may name only with --allow-uri",
            ));
        }
        if self.excludes_part(entry) {
            return Err(Problem::new(recorded::WHOLE_FILE));
        }
        Ok(())
    }

    /// Whether a URL is that of a file beside a check file on a server, which may name it.
    fn is_beside_list(&self, name: &OsStr) -> bool {
        let mut lists = self.settings.names.iter().filter_map(|list| Location::new(list).url());
        lists.any(|list| is_beside_url(list, name))
    }

    /// Returns the content and the parameters of the checksums that are wanted for an entry. Fails if the
    /// options ask for another content than the line.
    fn meaning(&self, entry: &Entry, wanted: &Wanted) -> Result<Meaning<'_>, Problem> {
        let tags = match wanted {
            Wanted::All(tags) => tags.as_slice(),
            Wanted::Own | Wanted::Nothing => slice::from_ref(&entry.tag),
        };
        let parameters = tags.iter().map(|tag| groups::parameters(tag.as_ref(), &self.given));
        let mut parameters: Vec<_> = parameters.collect();
        if tags.contains(&None) {
            parameters.extend(self.likely.get());
        }
        match &entry.tag {
            Some(tag) => recorded::meaning(self.settings, tag, parameters),
            None => Ok(Meaning { parameters: parameters.into(), ..self.settings.meaning() }),
        }
    }

    /// Finds out what the checksum of a line without a tag is of, if it is not what the options say. The content is not
    /// read if it is known to be `unreadable`. `None` if a search is not wanted.
    fn search(
        &self,
        entry: &Entry,
        notes: Notes,
        unreadable: Option<Problem>,
    ) -> Option<Result<Found, Problem>> {
        let search = self.check.search.as_ref().filter(|_| entry.tag.is_none())?;
        if let Err(failure) = self.check_allowed(entry) {
            return Some(Err(failure));
        }
        let name = OsStr::from_bytes(&entry.name);
        let value = Value { digest: entry.digest.clone(), algorithm: entry.algorithm, parts: None };
        let (settings, reporter) = (self.settings, &self.reporter);
        let origin = Origin::Listed;
        let searcher = Searcher { name, origin, settings, search, notes, reporter };
        let found = searcher.find(slice::from_ref(&value), unreadable);
        if let Ok(found) = &found
            && let Some(matched) = &found.search.matched
            && matched.reading.is_over_blocks_of_content()
        {
            let _ = self.likely.set(matched.reading.parameters);
        }
        Some(found)
    }

    /// Returns the digests that a line without a tag may have and that are not tried for it.
    fn forgeable(&self, entry: &Entry) -> Vec<Algorithm> {
        let is_open = entry.algorithm.is_none()
            && self.check.search.as_ref().is_some_and(|search| search.algorithms.is_empty());
        if is_open { untried_of_size(entry.digest.len()) } else { Vec::new() }
    }

    /// Whether a line without a tag is of something that can be read only once, and so is searched for in one pass.
    fn is_searched_stream(&self, entry: &Entry) -> bool {
        let name = OsStr::from_bytes(&entry.name);
        entry.tag.is_none() && self.check.search.is_some() && input::is_read_once(name)
    }

    /// Whether a report has the checksum for a tag.
    fn has(&self, report: &Report, tag: Option<&Tag>) -> bool {
        let parameters = groups::parameters(tag, &self.given);
        report.checksums.iter().any(|(known, _)| *known == parameters)
    }

    /// Whether a line without a tag has another digest than the options say.
    fn is_of_another_digest(&self, entry: &Entry) -> bool {
        let given = self.given.algorithm();
        let is_named = entry.algorithm.is_some_and(|algorithm| algorithm != given);
        entry.tag.is_none() && (is_named || entry.digest.len() != given.digest_size())
    }

    /// Returns the content that is hashed for a line: that of the line, or of the options.
    fn content(&self, entry: &Entry) -> Content {
        recorded::content(self.settings, entry.tag.as_ref())
    }

    /// Whether the line is of a whole file, and the options ask for a part of each image.
    fn excludes_part(&self, entry: &Entry) -> bool {
        recorded::excludes_part(self.settings, entry.tag.as_ref())
    }

    fn notes(&self) -> Notes {
        match self.check.verbosity {
            Verbosity::All => Notes::Printed,
            Verbosity::Failures => Notes::WarningsOnly,
            Verbosity::Nothing => Notes::Silent,
        }
    }
}

impl Checker<'_> {
    /// Processes an item in its turn. `early` holds the checksums if they were computed ahead.
    fn take(
        &mut self,
        item: Item,
        wanted: &Wanted,
        early: Option<Result<Report, Problem>>,
    ) -> io::Result<()> {
        match item {
            Item::Entry(entry) => {
                self.counts.entries += 1;
                // No other pipe is opened.
                let is_pipe = entry.name == b"-" && input::is_read_once(OsStr::new("-"));
                let is_read = is_pipe && *wanted != Wanted::Nothing;
                if is_read && std::mem::replace(&mut self.has_read_pipe, true) {
                    return self.fail(&entry, &Problem::new(IS_READ));
                }
                if self.images.is_of_another_digest(&entry)
                    || *wanted == Wanted::Own && self.images.is_searched_stream(&entry)
                {
                    let found = self.images.search(&entry, self.images.notes(), None);
                    let found = found.expect("the parser allowed it");
                    self.images.reporter.end(OsStr::from_bytes(&entry.name), None);
                    return self.check_found(&entry, found);
                }
                let own = || self.images.checksums(&entry, &Wanted::Own);
                let beside = early.as_ref().map(hash::size);
                let result = match wanted {
                    Wanted::Own => early.unwrap_or_else(own),
                    Wanted::All(_) => {
                        // If all checksums together fail, this one may still succeed alone.
                        let all = early.unwrap_or_else(|| self.images.checksums(&entry, wanted));
                        all.or_else(|_| own())
                    }
                    Wanted::Nothing => match self.known.get(&groups::subject(&entry)) {
                        Some(report) => Ok(report.clone()),
                        None => own(),
                    },
                };
                self.images.reporter.end(OsStr::from_bytes(&entry.name), beside);
                if let Ok(report) = &result
                    && let Wanted::All(tags) = wanted
                    && tags.iter().all(|tag| self.images.has(report, tag.as_ref()))
                {
                    self.known.insert(groups::subject(&entry), report.clone());
                }
                self.check_entry(&entry, result)
            }
            Item::Malformed { number, digits, mistake } => {
                self.counts.malformed += 1;
                self.counts.unknown += u64::from(mistake == Some(Mistake::ImageTag));
                if self.counts.mistake.is_none() {
                    self.counts.mistake = mistake.map(|mistake| (number, mistake));
                }
                self.counts.untagged.digits = self.counts.untagged.digits.or(digits);
                if self.is_manifest() {
                    self.say(&format!(
                        "line {number} of its manifest is not understood: what it is of was not checked"
                    ));
                } else if self.images.check.warn {
                    let line_type = &self.line_type;
                    self.say(&format!("{number}: improperly formatted {line_type} checksum line"));
                }
                Ok(())
            }
            Item::Read(image) => {
                self.counts.entries += 1;
                match image {
                    SelfCheck::Parts(name) => self.check_read(name),
                    SelfCheck::Implanted(name) => self.check_parts(name, implanted::check),
                    SelfCheck::Sums(name) => self.check_parts(name, sums::check),
                }
            }
            Item::End(end) => {
                self.all_well &= self.end_file(&end);
                self.counts = Counts::default();
                self.names.next();
                Ok(())
            }
        }
    }

    /// Reports the end of a check file. Returns whether everything in it is fine.
    fn end_file(&self, end: &End) -> bool {
        match end {
            End::Read(check_file::End::Reached) => {}
            End::Read(check_file::End::Image(format)) => {
                self.say(&hints::image(*format));
                if !self.is_stdin() {
                    messages::message(hints::CACHE);
                }
                return false;
            }
            End::Read(check_file::End::Binary(kind)) => {
                self.say(&match kind {
                    Binary::Tar => TAR.to_owned(),
                    Binary::Utf16(encoding) => hints::unmarked(encoding),
                    Binary::Other => BINARY.to_owned(),
                });
                return false;
            }
            End::OpenError(error) => {
                let problem = Problem::from(error);
                let hint = || hints::detached_value(self.name(), self.images.settings);
                let hint = (problem.cause == Cause::Missing).then(hint).flatten();
                self.say(&Problem { hint: hint.map(Cow::Owned), ..problem }.text());
                return false;
            }
            End::Read(check_file::End::Unreadable(_)) => {
                self.say("read error");
                return false;
            }
            End::Read(check_file::End::EndlessLine) => {
                self.say("line is too long");
                return false;
            }
        }
        self.summarise();
        let Counts { entries, matched, mismatched, undecided, .. } = self.counts;
        let Counts { unreadable, malformed, unknown, .. } = self.counts;
        entries > 0
            && matched > 0
            && mismatched == 0
            && undecided == 0
            && unreadable == 0
            // A line that a later version wrote has a checksum, and nothing was compared with it.
            && unknown == 0
            // A manifest lists the members of a container and nothing else.
            && (malformed == 0 || !self.images.check.strict && !self.is_manifest())
    }

    /// Checks an image whose parts have checksums by reading it.
    fn check_read(&mut self, name: OsString) -> io::Result<()> {
        let tag = Some(Tag::from(self.images.given));
        let entry = Entry { name: name.into_vec(), digest: Vec::new(), algorithm: None, tag };
        let settings = self.images.settings;
        let result = match settings.part.is_some() || settings.open.snapshot.is_some() {
            true => Err(Problem::new(recorded::WHOLE_FILE)),
            false => self.images.checksums(&entry, &Wanted::Own),
        };
        self.images.reporter.end(OsStr::from_bytes(&entry.name), None);
        match result {
            Ok(report) => {
                self.counts.matched += 1;
                self.report(&entry, Status::Ok, Ok((&report, &report.checksums[0])))
            }
            Err(failure) => self.fail(&entry, &failure),
        }
    }

    /// Checks an image with `check` against checksums of parts that it states of itself.
    fn check_parts(&mut self, name: OsString, check: CheckParts) -> io::Result<()> {
        let Images { settings, reporter, .. } = self.images;
        let result = check(&name, settings, self.images.notes(), reporter);
        reporter.end(&name, None);
        let tag = match &result {
            Ok((report, _)) => Tag::from(report.checksums[0].0),
            Err(_) => Tag::from(self.images.given),
        };
        let (name, digest) = (name.into_vec(), Vec::new());
        let entry = Entry { name, digest, algorithm: None, tag: Some(tag) };
        let (report, difference) = match result {
            Ok(found) => found,
            Err(failure) => return self.fail(&entry, &failure),
        };
        let status = if difference.is_none() { Status::Ok } else { Status::Failed };
        match difference {
            None => self.counts.matched += 1,
            Some(_) => self.counts.mismatched += 1,
        }
        self.report(&entry, status, Ok((&report, &report.checksums[0])))?;
        if let Some(text) = difference.filter(|_| self.warns()) {
            messages::message_of(&entry.name, &text);
        }
        Ok(())
    }

    fn check_entry(&mut self, entry: &Entry, result: Result<Report, Problem>) -> io::Result<()> {
        let name = OsStr::from_bytes(&entry.name);
        match result {
            Ok(report) => {
                let parameters = groups::parameters(entry.tag.as_ref(), &self.images.given);
                let find = |wanted| report.checksums.iter().find(|(known, _)| known == wanted);
                let own = find(&parameters).expect("it was wanted");
                let is_equal = |checksum: &(_, Digest)| checksum.1.as_bytes() == entry.digest;
                let is_other = entry.tag.is_none() && !is_equal(own);
                let likely = self.images.likely.get().and_then(find);
                let likely = likely.filter(|it| is_other && is_equal(it));
                let checksum = likely.unwrap_or(own);
                // A stream that can be read only once is gone.
                if !is_equal(checksum)
                    && !input::is_read_once(name)
                    && let Some(found) = self.images.search(entry, Notes::Silent, None)
                {
                    return self.check_found(entry, found);
                }
                let is_untagged = u64::from(entry.tag.is_none());
                let status = if is_equal(checksum) {
                    self.counts.matched += 1;
                    self.counts.untagged.matched += is_untagged;
                    Status::Ok
                } else {
                    self.counts.mismatched += 1;
                    self.counts.untagged.mismatched += is_untagged;
                    if !self.has_noted_size && self.images.notes() == Notes::Printed {
                        self.has_noted_size = report.note_odd_size(name);
                    }
                    Status::Failed
                };
                self.report(entry, status, Ok((&report, checksum)))?;
                if let Some((parameters, _)) = likely {
                    self.note_reading(&Reading::of(expect::Subject::Content, *parameters));
                }
                if status == Status::Failed && self.warns() {
                    self.say_where(entry, Some(&parameters));
                    self.say_other_vpc_size(entry, &report);
                    self.note_size(entry, &report);
                }
                Ok(())
            }
            // The bytes of a file may be readable where its content is not.
            Err(failure)
                if matches!(failure.cause, Cause::Digest | Cause::Damaged | Cause::Other)
                    && !input::is_read_once(name) =>
            {
                match self.images.search(entry, Notes::Silent, Some(failure.clone())) {
                    Some(found) => self.check_found(entry, found),
                    None => self.fail(entry, &failure),
                }
            }
            Err(failure) => self.fail(entry, &failure),
        }
    }

    /// Reports an image that cannot be read, or that does not match a digest that is stated with it.
    fn fail(&mut self, entry: &Entry, failure: &Problem) -> io::Result<()> {
        let is_missing = failure.cause == Cause::Missing;
        self.counts.is_beside |= is_missing && self.is_beside(&entry.name);
        if is_missing && self.images.check.ignore_missing {
            return Ok(());
        }
        let status = match failure.cause {
            Cause::Digest => Status::Failed,
            _ => Status::Error,
        };
        match status {
            Status::Failed => self.counts.mismatched += 1,
            _ => self.counts.unreadable += 1,
        }
        let hint = is_missing.then(|| hints::of_windows(&entry.name)).flatten();
        let failure = &match hint {
            Some(hint) => failure.clone().with_hint(hint),
            None => failure.clone(),
        };
        failure.report(OsStr::from_bytes(&entry.name));
        self.report(entry, status, Err(failure))
    }

    /// Reports a line without a tag, after everything was tried that it can be.
    fn check_found(&mut self, entry: &Entry, found: Result<Found, Problem>) -> io::Result<()> {
        let name = OsStr::from_bytes(&entry.name);
        let found = match found {
            Ok(found) => found,
            Err(failure) => return self.fail(entry, &failure),
        };
        let is_printed = self.images.notes() == Notes::Printed;
        let report = &found.report;
        let Some(matched) = &found.search.matched else {
            let status = Status::of(&found);
            let is_doubted = status == Status::Undecided;
            let doubted = found.search.doubted.map(|(reading, _)| reading.parameters);
            let equal = doubted.and_then(|it| report.checksums.iter().find(|(own, _)| *own == it));
            self.counts.undecided += u64::from(is_doubted);
            self.counts.mismatched += u64::from(!is_doubted);
            self.counts.untagged.mismatched += u64::from(!is_doubted);
            self.report(entry, status, Ok((report, equal.unwrap_or(&report.checksums[0]))))?;
            if !self.warns() {
                return Ok(());
            }
            let say = |text: &str| messages::message_of(&entry.name, text);
            found.reasons().iter().for_each(|reason| say(reason));
            if is_doubted {
                return Ok(());
            }
            if self.counts.untagged.tried.is_none() {
                self.counts.untagged.tried = Some(found.search.describe_tried());
                self.counts.untagged.forgeable = self.images.forgeable(entry);
            }
            if is_printed && !self.has_noted_size {
                self.has_noted_size = report.note_odd_size(name);
            }
            self.say_where(entry, None);
            self.say_other_vpc_size(entry, report);
            self.note_size(entry, report);
            return Ok(());
        };
        self.counts.matched += 1;
        self.counts.untagged.matched += 1;
        let parameters = matched.reading.parameters;
        let checksum = report.checksums.iter().find(|(known, _)| *known == parameters);
        self.report(entry, Status::Ok, Ok((report, checksum.expect("it matched"))))?;
        if let Some(why) = found.uncovered.as_ref().filter(|_| self.warns()) {
            messages::message_of(&entry.name, &verdict::describe_uncovered(why));
        }
        self.note_reading(&matched.reading);
        Ok(())
    }

    fn warns(&self) -> bool {
        self.images.check.verbosity != Verbosity::Nothing
    }

    /// Says once for each check file how the checksums of its lines without a tag were found to be computed.
    fn note_reading(&mut self, reading: &Reading) {
        let is_printed = self.images.notes() == Notes::Printed;
        if !is_printed || std::mem::replace(&mut self.counts.untagged.is_noted, true) {
            return;
        }
        let note = format!(
            "note: has lines without a tag that are {reading}: --strict-construction takes them only as \
             the options say"
        );
        let shown = if self.is_stdin() { OsStr::new("standard input") } else { self.name() };
        messages::remark_of(shown.as_bytes(), &note);
    }

    /// Says where an image that does not match differs from the map beside it. `parameters` are those of the
    /// checksum, if they are known.
    fn say_where(&self, entry: &Entry, parameters: Option<&Parameters>) {
        let Images { settings, reporter, .. } = self.images;
        // A map is of the content of a disk. The line of a manifest is of its bytes.
        if matches!(entry.tag, Some(Tag::File(_)))
            && container_of(Path::new(OsStr::from_bytes(&entry.name))).is_some()
        {
            return;
        }
        let Ok(meaning) = self.images.meaning(entry, &Wanted::Own) else { return };
        let failed = beside::Failed {
            name: OsStr::from_bytes(&entry.name),
            settings,
            meaning: &meaning,
            parameters,
            expected: &entry.digest,
        };
        if let Some(text) = failed.differences(reporter) {
            messages::message_of(&entry.name, &text);
        }
    }

    /// Says that a vpc image has another size, of which the checksum may be.
    fn say_other_vpc_size(&self, entry: &Entry, report: &Report) {
        let asked = self.images.settings.open.vpc_size;
        let chosen = self.images.content(entry).vpc_size.unwrap_or(asked);
        if let Some(text) = report.other_vpc_size(chosen) {
            messages::message_of(&entry.name, &text);
        }
    }

    /// Says how large a target is whose size may not be that of the image that was written to it. A
    /// checksum does not tell the length of its content.
    fn note_size(&mut self, entry: &Entry, report: &Report) {
        let name = OsStr::from_bytes(&entry.name);
        let is_whole = !matches!(entry.tag, Some(Tag::File(_)))
            && self.images.content(entry).part.is_none()
            && !self.images.check.bytes;
        if self.has_noted_target
            || !is_whole
            || self.images.notes() != Notes::Printed
            || !input::is_target(name)
        {
            return;
        }
        self.has_noted_target = true;
        let size = report.virtual_size;
        let note = format!(
            "note: {size} bytes were read: if the image that was copied here is smaller, --length=SIZE \
             compares only its bytes"
        );
        messages::remark_of(&entry.name, &note);
    }

    fn report(
        &mut self,
        entry: &Entry,
        status: Status,
        result: Result<(&Report, &(Parameters, Digest)), &Problem>,
    ) -> io::Result<()> {
        let name = OsStr::from_bytes(&entry.name);
        let is_wanted = match self.images.check.verbosity {
            Verbosity::All => true,
            Verbosity::Failures => status != Status::Ok,
            Verbosity::Nothing => false,
        };
        match result {
            _ if !is_wanted => Ok(()),
            _ if !self.images.settings.json => {
                let note = match &entry.tag {
                    Some(Tag::Image(tag)) => recorded::describe(&tag.content),
                    Some(Tag::File(_)) | None => String::new(),
                };
                self.output.status(name, status, &note)
            }
            Ok((report, checksum)) => {
                let content = self.images.content(entry);
                self.output.object(name, report, checksum, &content, Some(status), b'\n')
            }
            Err(failure) => {
                let content = self.images.content(entry);
                self.output.error_object(name, failure, &content, Some(status), b'\n')
            }
        }
    }

    fn summarise(&self) {
        let Images { settings, check, .. } = self.images;
        let counts = &self.counts;
        let algorithm = self.images.given.algorithm();
        let digits = counts.untagged.digits.and_then(|digits| hints::digits(digits, algorithm));
        if counts.entries == 0 {
            self.say("no properly formatted checksum lines found");
            let no_entries = || hints::no_entries(counts.mistake.as_ref(), counts.malformed);
            if let Some(hint) = digits.or_else(no_entries) {
                messages::message(&hint);
            }
            if matches!(counts.mistake, Some((_, Mistake::Binary))) && !self.is_stdin() {
                messages::message(hints::CACHE);
            }
            return;
        }
        if check.verbosity == Verbosity::Nothing {
            return;
        }
        let warn = |count: u64, one: &str, many: &str| {
            if count > 0 {
                let what = if count == 1 { one } else { many };
                messages::message(&format!("WARNING: {count} {what}"));
            }
        };
        warn(counts.malformed, "line is improperly formatted", "lines are improperly formatted");
        warn(
            counts.unknown,
            "line with a tag of blksum was not checked: it may be damaged or of a later version",
            "lines with tags of blksum were not checked: they may be damaged or of a later version",
        );
        warn(counts.unreadable, "listed file could not be read", "listed files could not be read");
        warn(
            counts.mismatched,
            "computed checksum did NOT match",
            "computed checksums did NOT match",
        );
        warn(
            counts.undecided,
            "computed checksum is equal, but it may be that of other content",
            "computed checksums are equal, but they may be those of other content",
        );
        if counts.is_beside {
            self.say(&hints::beside(Path::new(self.name())));
        }
        if check.ignore_missing && counts.matched == 0 {
            self.say("no file was verified");
        }
        let mistake = || match counts.mistake.as_ref()? {
            // It is counted above.
            (_, Mistake::ImageTag) => None,
            found => hints::mistake(found),
        };
        if let Some(hint) = digits.or_else(mistake) {
            messages::message(&hint);
        }
        let is_bytes = check.bytes || settings.open.format == Some(Format::Raw) && self.is_linear();
        if let Some(tried) = counts.untagged.tried.as_ref().filter(|_| counts.untagged.matched == 0)
        {
            messages::message(&hints::tried(tried, &counts.untagged.forgeable));
        } else if counts.untagged.mismatched > 0
            && counts.untagged.matched == 0
            && let Some(hint) = hints::none_matched(&self.images.given, is_bytes)
        {
            messages::message(&hint);
        }
    }

    /// Whether a file that is missing is in the folder of the check file.
    fn is_beside(&self, name: &[u8]) -> bool {
        let name = Path::new(OsStr::from_bytes(name));
        let folder = Path::new(self.name()).parent();
        name.is_relative() && folder.is_some_and(|folder| folder.join(name).is_file())
    }

    fn is_linear(&self) -> bool {
        self.images.given.construction() == Construction::Linear
    }

    fn is_stdin(&self) -> bool {
        self.name() == "-"
    }

    /// Whether the current check file is the manifest of a container.
    fn is_manifest(&self) -> bool {
        is_container(Path::new(self.name()))
    }

    fn name(&self) -> &OsStr {
        self.names.as_slice().first().expect("every end has its name")
    }

    /// Prints a message about the current check file.
    fn say(&self, text: &str) {
        let shown = if self.is_stdin() { OsStr::new("standard input") } else { self.name() };
        messages::message_of(shown.as_bytes(), text);
    }
}

const IS_READ: &str = "was read for an earlier line, and can be read only once";

const BINARY: &str = "is not a check file: it has NUL bytes";

const TAR: &str =
    "is a tar archive: the manifest of an appliance is checked if its name ends in .ova";
