//! The options of a run, resolved once from [`Args`]. The run itself does not read those.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::slice;

use blkhash::{Algorithm, Construction, Parameters};
use blkimage::{Format, FormatName, OpenOptions};
use blkmap::Header;
use blksum::check_file::{Form, Style};
use blksum::expect::{Limits, Search, Value};
use blksum::{Content, Encoding, ImageTag, Part, Tag, Tuning};

use super::args::{Args, LineForm};
use super::names;
use crate::image::filter::Filter;
use crate::image::input::Origin;
use crate::image::notes::Notes;
use crate::progress::When;
use crate::value::digest::DigestName;
use crate::value::expected::{self, Expected};
use crate::{implementation, quote};

/// The options of a run.
#[derive(Debug)]
pub struct Settings {
    /// The mode, with its options.
    pub action: Action,
    /// Names of images, or of check files in check mode.
    pub names: Vec<OsString>,
    /// Source of the names.
    pub origin: Origin,
    /// Standard input was the list of names, and is no image.
    pub is_stdin_taken: bool,
    /// Parameters of the checksums, never empty. Tags in check files take precedence.
    pub parameters: Vec<Parameters>,
    /// Options for opening images.
    pub open: OpenOptions,
    /// Part of each image that is hashed. `None` is all of it.
    pub part: Option<Part>,
    /// Settings that only affect the speed.
    pub tuning: Tuning,
    /// When progress is shown.
    pub progress: When,
    /// Whether the process restricts itself.
    pub sandbox: bool,
    /// Whether images and the run are described.
    pub verbose: bool,
    /// Whether output is JSON.
    pub json: bool,
    /// Whether `-t` was given. Users of other programs may have meant a number of threads.
    pub text: bool,
}

/// The content that is hashed, and the parameters of its checksums.
#[derive(Clone, Debug)]
pub struct Meaning<'a> {
    /// Parameters of each checksum.
    pub parameters: Cow<'a, [Parameters]>,
    /// Options for opening the image.
    pub open: Cow<'a, OpenOptions>,
    /// Part of the image that is hashed. `None` is all of it.
    pub part: Option<Part>,
    /// Whether a line records the part, which must have a whole sector then.
    pub is_recorded: bool,
    /// The values of which the checksums may be one. The shape of the content is of interest if it has one.
    pub sought: &'a [Value],
}

/// The mode of the command.
#[derive(Debug)]
pub enum Action {
    /// List the digests.
    List,
    /// Print checksums.
    Hash(Hash),
    /// Check checksums.
    Check(Check),
    /// Check values from elsewhere.
    Expect(Expect),
}

/// Options for printing checksums.
#[derive(Clone, Debug)]
pub struct Hash {
    /// Style of a line, for each of the parameters.
    pub styles: Vec<Style>,
    /// Parameters and styles of the digests of the bytes of each file, besides its checksums.
    pub bytes: Vec<(Parameters, Style)>,
    /// Filter for the files in folders. `None` does not descend into folders.
    pub recursive: Option<Filter>,
    /// File of the map, or folder of the maps, that are written as well.
    pub map: Option<PathBuf>,
    /// Messages that are printed in addition to checksums and errors.
    pub notes: Notes,
}

impl Hash {
    /// Returns the end of a line.
    pub fn end_of_line(&self) -> u8 {
        if self.styles.iter().any(|style| style.zero) { 0 } else { b'\n' }
    }
}

/// Options for checking values from elsewhere.
#[derive(Clone, Debug)]
pub struct Expect {
    /// The values of each image, in the order of the images. Empty if they stand in a log.
    pub values: Vec<Vec<Expected>>,
    /// The log with the values.
    pub log: Option<PathBuf>,
    /// The search for values.
    pub search: Search,
    /// Results that are reported.
    pub verbosity: Verbosity,
}

/// Options for checking checksums.
#[derive(Clone, Debug)]
pub struct Check {
    /// Results that are reported.
    pub verbosity: Verbosity,
    /// Whether every malformed line is reported.
    pub warn: bool,
    /// Whether malformed lines are failures.
    pub strict: bool,
    /// Whether missing images are skipped.
    pub ignore_missing: bool,
    /// Whether names may be URIs.
    pub allow_uri: bool,
    /// Whether lines without a tag are digests of the files' own bytes.
    pub bytes: bool,
    /// The search for lines without a tag that do not match. `None` tries nothing.
    pub search: Option<Search>,
}

/// The results that check mode reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    /// Every image.
    All,
    /// Images that do not match or cannot be read.
    Failures,
    /// Nothing.
    Nothing,
}

impl Settings {
    /// Resolves `args`. The error is a message about wrong options.
    pub fn new(mut args: Args, text_after_tag: bool) -> Result<Self, String> {
        args.tag |= args.style.take_if(|style| *style == LineForm::Tag).is_some();
        let bytes = args.take_bytes()?;
        args.check_combination(text_after_tag)?;
        if args.bytes {
            args.construction = Some(Construction::Linear);
            // Tagged lines of check files still refer to the content of images.
            if !args.check {
                args.opening.open.format = Some(Format::Raw);
            }
        }
        let parameters = args.parameters()?;
        let action = if args.list_digests {
            Action::List
        } else if args.expects() {
            Action::Expect(args.expect_settings()?)
        } else if args.check {
            let [parameters] = parameters.as_slice() else {
                return Err("untagged lines of a check file have one digest".into());
            };
            Action::Check(args.check_settings(parameters)?)
        } else {
            Action::Hash(args.hash_settings(&parameters, bytes)?)
        };
        let tuning = args.tuning(&parameters)?;
        let (progress, json, text) = (args.progress.unwrap_or_default(), args.json, args.text);
        let (sandbox, verbose) = (!args.opening.no_sandbox, args.verbose);
        let part = args.part();
        let open = args.opening.options()?;
        let nbd = open.nbd.clone().connections(tuning.threads);
        // URIs on the command line may name files of this host, those in check files may not.
        let nbd = nbd.allow_local_files(!args.check);
        let open = open.nbd(nbd);
        let lists = args.files0_from;
        let (names, origin) = match (args.names.is_empty(), lists.is_empty()) {
            (_, false) => (names::read(&lists)?, Origin::Listed),
            (true, true) => (vec!["-".into()], Origin::CommandLine),
            (false, true) => (args.names, Origin::CommandLine),
        };
        if args.check && names.is_empty() {
            return Err("--files0-from: names no list of checksums to check".into());
        }
        let is_stdin_taken = lists.iter().any(|list| list == Path::new("-"));
        Ok(Self {
            action,
            names,
            origin,
            is_stdin_taken,
            parameters,
            open,
            part,
            tuning,
            progress,
            sandbox,
            verbose,
            json,
            text,
        })
    }
}

impl Settings {
    /// Returns the content and the parameters for images without a tag.
    pub fn meaning(&self) -> Meaning<'_> {
        let (parameters, open) = ((&*self.parameters).into(), Cow::Borrowed(&self.open));
        Meaning { parameters, open, part: self.part, is_recorded: false, sought: &[] }
    }

    /// Returns the content that the options ask for, as a tag records it before an image is known.
    pub fn content(&self) -> Content {
        Content { snapshot: self.open.snapshot.clone(), part: self.part, ..Content::default() }
    }
}

impl Args {
    fn expect_settings(&self) -> Result<Expect, String> {
        if self.expect_log.is_some() && self.names.is_empty() && self.files0_from.is_empty() {
            return Err("--expect-log: name the images that were copied".into());
        }
        let values = match self.expect_log {
            None => expected::bind(&self.names, &self.expect)?,
            Some(_) => Vec::new(),
        };
        let (log, search) = (self.expect_log.clone(), self.search(true)?);
        expected::check_digests(&values, &search)?;
        expected::check_streams(&self.names, &values, log.as_deref())?;
        Ok(Expect { values, log, search, verbosity: self.verbosity() })
    }

    fn hash_settings(
        &self,
        parameters: &[Parameters],
        bytes: Vec<Algorithm>,
    ) -> Result<Hash, String> {
        // Only a tag shows which of several checksums a line holds.
        let tag = self.tag || self.style.is_none() && parameters.len() + bytes.len() > 1;
        if tag && !self.json {
            self.content()
                .check_recordable()
                .map_err(|error| format!("{error}: use --json, or one --digest without --tag"))?;
        }
        let bytes = bytes.into_iter().map(|algorithm| {
            let style = Style { form: self.form_of_bytes(algorithm, tag), ..self.style_of_lines() };
            (Tag::linear(algorithm), style)
        });
        Ok(Hash {
            styles: parameters.iter().map(|parameters| self.style(parameters, tag)).collect(),
            bytes: bytes.collect(),
            recursive: self.filter()?,
            map: self.map_path(&parameters[0])?,
            notes: if self.quiet { Notes::WarningsOnly } else { Notes::Printed },
        })
    }

    /// Returns the digests of the command line, or the default.
    fn digests(&self) -> &[DigestName] {
        const DEFAULT: DigestName =
            DigestName { algorithm: Algorithm::Sha256, construction: None, is_bytes: false };
        if self.digest.is_empty() { slice::from_ref(&DEFAULT) } else { &self.digest }
    }

    /// Removes the digests of the bytes of files, and returns their algorithms without duplicates.
    fn take_bytes(&mut self) -> Result<Vec<Algorithm>, String> {
        let mut bytes = Vec::new();
        for name in self.digest.extract_if(.., |name| name.is_bytes) {
            if !bytes.contains(&name.algorithm) {
                bytes.push(name.algorithm);
            }
        }
        let Some(first) = bytes.first() else { return Ok(bytes) };
        if self.check || self.expects() {
            return Err(format!("{first}:bytes is meaningless when verifying checksums"));
        }
        if self.bytes || self.digest.is_empty() {
            return Err(format!(
                "{first}:bytes adds a digest to the checksum of the content: --bytes --digest {first} is the one, \
                 --digest sha256 the other"
            ));
        }
        Ok(bytes)
    }

    /// Returns the parameters of the checksums, without duplicates.
    fn parameters(&self) -> Result<Vec<Parameters>, String> {
        let construction = self.construction.unwrap_or_default();
        let mut all = Vec::new();
        for name in self.digests() {
            let parameters = name.parameters(construction, self.block_size, self.salt);
            let parameters = parameters.map_err(|error| error.to_string())?;
            if !all.contains(&parameters) {
                all.push(parameters);
            }
        }
        let has_salt = |parameters: &Parameters| parameters.construction().max_salt() > 0;
        if self.salt.is_some() && !all.iter().any(has_salt) {
            return Err("the --salt option is meaningful only for fs-verity and dm-verity".into());
        }
        Ok(all)
    }

    /// Refuses invalid combinations, and options that have no effect together with the others, instead of ignoring them. Those
    /// that sha256sum also refuses have its order and wording, and the first one counts.
    fn check_combination(&self, text_after_tag: bool) -> Result<(), String> {
        let refused = self.misplaced(text_after_tag).or_else(|| self.conflict());
        refused.map_or(Ok(()), Err)
    }

    /// Returns why an option has no place beside --check, or without it.
    fn misplaced(&self, text_after_tag: bool) -> Option<String> {
        let (check, hash) = (self.check, !self.check);
        let expects = self.expects();
        let only = match expects {
            true => "option is meaningful only with --check",
            false => "option is meaningful only when verifying checksums",
        };
        first(&[
            (self.tag && text_after_tag, format_args!("--tag does not support --text mode")),
            (check && self.zero, format_args!("the --zero option is not supported {VERIFYING}")),
            (check && self.tag, format_args!("the --tag option is meaningless {VERIFYING}")),
            (
                check && (self.binary || self.text),
                format_args!("the --binary and --text options are meaningless {VERIFYING}"),
            ),
            (
                check && self.map.is_some(),
                format_args!("the --map option is meaningless {VERIFYING}"),
            ),
            (
                check && self.recursive,
                format_args!("the --recursive option is meaningless {VERIFYING}"),
            ),
            (hash && self.ignore_missing, format_args!("the --ignore-missing {only}")),
            (hash && self.status && !expects, format_args!("the --status {only}")),
            (hash && self.strict_construction, format_args!("the --strict-construction {only}")),
            (hash && self.warn, format_args!("the --warn {only}")),
            (hash && self.strict, format_args!("the --strict {only}")),
            (hash && self.allow_uri, format_args!("the --allow-uri {only}")),
        ])
    }

    /// Returns why two options exclude each other.
    fn conflict(&self) -> Option<String> {
        let format = self.opening.format_name();
        let is_other_format = format != RAW && format != FormatName::default();
        let other = self.construction.filter(|it| *it != Construction::Linear);
        let is_linear = |name: &DigestName| {
            let construction = name.construction.or(self.construction);
            construction.is_some_and(|construction| !construction.has_blocks())
        };
        let uses_tls = self.opening.open.nbd.tls_certificates.is_some();
        let is_tls = |name: &OsString| name.as_bytes().to_ascii_lowercase().starts_with(b"nbds");
        let is_listed = !self.files0_from.is_empty();
        let name = self.names.first().filter(|_| is_listed);
        let name = name.map(|name| quote::name(name.as_bytes())).unwrap_or_default();
        first(&[
            (
                !self.recursive && !self.include.is_empty(),
                format_args!("the --include option is meaningful only with --recursive"),
            ),
            (
                !self.recursive && !self.exclude.is_empty(),
                format_args!("the --exclude option is meaningful only with --recursive"),
            ),
            (
                is_listed && !self.names.is_empty(),
                format_args!("{name}: --files0-from takes no other names of images"),
            ),
            (
                self.bytes && is_other_format,
                format_args!("--bytes cannot be used with --format {format}: {BYTES}"),
            ),
            (
                self.bytes && other.is_some(),
                format_args!(
                    "--bytes cannot be used with --construction {}: {BYTES}",
                    other.unwrap_or_default()
                ),
            ),
            (
                self.bytes && self.digest.iter().any(|name| name.construction.is_some()),
                format_args!("--bytes and a construction after --digest are mutually exclusive"),
            ),
            (
                self.block_size.is_some() && self.digests().iter().all(is_linear),
                format_args!(
                    "the --block-size option is meaningless with linear, which has no blocks"
                ),
            ),
            (
                // The names in check files and lists are not known yet.
                uses_tls && !self.check && !is_listed && !self.names.iter().any(is_tls),
                format_args!("the --tls-certificates option is meaningful only for nbds:// URIs"),
            ),
            (
                uses_tls && self.check && !self.allow_uri,
                format_args!("the --tls-certificates option is meaningful only with --allow-uri"),
            ),
            (self.json && self.tag, format_args!("--json and --tag are mutually exclusive")),
        ])
    }

    fn filter(&self) -> Result<Option<Filter>, String> {
        let filter = || Filter::new(&self.include, &self.exclude);
        self.recursive.then(filter).transpose()
    }

    /// Returns the file or folder for maps with the blocks of a checksum.
    fn map_path(&self, parameters: &Parameters) -> Result<Option<PathBuf>, String> {
        let Some(path) = &self.map else { return Ok(None) };
        let algorithm = parameters.algorithm();
        if !Header::accepts(algorithm) {
            return Err(format!("--map: there are no maps of {algorithm}"));
        }
        let is_one = self.names.len() <= 1 && !self.recursive && self.files0_from.is_empty();
        if !is_one && !path.is_dir() {
            let name = quote::name(path.as_os_str().as_bytes());
            return Err(format!("--map: {name} is not a folder: several images need one"));
        }
        Ok(Some(path.clone()))
    }

    fn part(&self) -> Option<Part> {
        if let Some(number) = self.partition {
            return Some(Part::Partition(number));
        }
        let offset = self.offset.unwrap_or(0);
        let is_whole = offset == 0 && self.length.is_none();
        (!is_whole).then_some(Part::Range { offset, length: self.length })
    }

    fn content(&self) -> Content {
        Content {
            snapshot: self.opening.open.snapshot.clone(),
            part: self.part(),
            ..Content::default()
        }
    }

    fn check_settings(&self, parameters: &Parameters) -> Result<Check, String> {
        let algorithm = parameters.algorithm();
        if algorithm.digest_size() == 0 {
            return Err(format!("the digest {algorithm} is empty: there is nothing to check"));
        }
        let is_strict = self.strict_construction
            || self.bytes
            || self.construction.is_some()
            || self.digest.iter().any(|name| name.construction.is_some())
            || parameters.construction().max_salt() > 0;
        Ok(Check {
            verbosity: self.verbosity(),
            search: if is_strict { None } else { Some(self.search(false)?) },
            warn: self.warn,
            strict: self.strict,
            ignore_missing: self.ignore_missing,
            allow_uri: self.allow_uri,
            bytes: self.bytes,
        })
    }

    fn verbosity(&self) -> Verbosity {
        match (self.status, self.quiet) {
            (true, _) => Verbosity::Nothing,
            (false, true) => Verbosity::Failures,
            (false, false) => Verbosity::All,
        }
    }

    /// Returns whether values from elsewhere are checked.
    fn expects(&self) -> bool {
        !self.expect.is_empty() || self.expect_log.is_some()
    }

    /// Returns what is tried for values without a tag.
    fn search(&self, is_expect: bool) -> Result<Search, String> {
        let construction = self.construction;
        if is_expect && self.digest.iter().any(|name| name.construction.is_some()) {
            return Err("with --expect, use --construction, which is for all digests".into());
        }
        if construction.is_some_and(|construction| construction.max_salt() > 0) {
            return Err("blkhash verity checks values of fs-verity and dm-verity".into());
        }
        let algorithms = self.digest.iter().map(|name| name.algorithm).collect();
        let limits = Limits::SHORT.unless_set(self.opening.open.max_zeros);
        // Check files may have many lines.
        let limits = if is_expect { limits.all_digests() } else { limits };
        Ok(Search { algorithms, construction, block_size: self.block_size, limits })
    }

    fn style(&self, parameters: &Parameters, tag: bool) -> Style {
        // A plain tag means the whole file.
        let is_plain = self.opening.format_name() == RAW
            && self.part().is_none()
            && parameters.construction() == Construction::Linear;
        let form = match (tag, self.binary) {
            _ if self.style == Some(LineForm::Oci) => Form::Named(parameters.algorithm()),
            (true, _) if is_plain => Form::Tagged(Tag::File(parameters.algorithm())),
            (true, _) => {
                let tag = ImageTag { parameters: *parameters, content: self.content() };
                Form::Tagged(Tag::Image(Box::new(tag)))
            }
            (false, true) => Form::Binary,
            (false, false) => Form::Text,
        };
        Style { form, ..self.style_of_lines() }
    }

    /// Returns the form of a line of the digest of the bytes of a file.
    fn form_of_bytes(&self, algorithm: Algorithm, tag: bool) -> Form {
        match (tag, self.binary) {
            _ if self.style == Some(LineForm::Oci) => Form::Named(algorithm),
            (true, _) => Form::Tagged(Tag::File(algorithm)),
            (false, true) => Form::Binary,
            (false, false) => Form::Text,
        }
    }

    /// Returns the style of all lines. Their forms differ.
    fn style_of_lines(&self) -> Style {
        let encoding = if self.base64 { Encoding::Base64 } else { Encoding::Hex };
        Style { form: Form::Text, encoding, zero: self.zero }
    }

    fn tuning(&self, parameters: &[Parameters]) -> Result<Tuning, String> {
        let find = |name| {
            let algorithms = parameters.iter().map(Parameters::algorithm);
            let mut found = algorithms.map(|algorithm| implementation::find(algorithm, name));
            let first = found.next().expect("never empty");
            first.or_else(|error| found.find_map(Result::ok).ok_or(error))
        };
        let implementation = self.implementation.as_deref().map(find).transpose();
        let implementation = implementation.map_err(|error| error.to_string())?;
        let defaults = Tuning::default();
        let size = |size| usize::try_from(size).unwrap_or(usize::MAX);
        Ok(defaults
            .with_threads(self.threads.map_or(defaults.threads, usize::from))
            .with_read_size(self.read_size.map_or(defaults.read_size, size))
            .with_queue_depth(self.queue_depth.map_or(defaults.queue_depth, usize::from))
            .with_max_zeros(self.opening.open.max_zeros)
            .with_implementation(implementation))
    }
}

/// The bytes of a file as they are.
const RAW: FormatName = FormatName { format: Some(Format::Raw), compression: None };

const VERIFYING: &str = "when verifying checksums";

const BYTES: &str = "--bytes is the same as --format raw --construction linear";

/// Returns the reason of the first combination of options that is refused.
fn first(refused: &[(bool, fmt::Arguments<'_>)]) -> Option<String> {
    refused.iter().find_map(|(is_refused, reason)| is_refused.then(|| reason.to_string()))
}
