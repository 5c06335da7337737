//! `blkhash verity verify`: compares an image with its tree, and finds every block that does not match.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Instant;

use blkfs::Content;
use blkhash::Digest;
use blkimage::{Format, OpenOptions, Slice, Source};
use blkrecord::Flat;
use blksum::Unreadable;
use blkverity::{Error, Finding, Problem, StoredTree, Summary, Verifier};

use super::args::Verify;
use super::{digest, format};
use crate::blkhash::limit::Limit;
use crate::blkhash::out::Out;
use crate::blkhash::source::{Data, shown};
use crate::blkhash::unreadable;
use crate::image;
use crate::image::contents::{self, Contents};
use crate::json;
use crate::messages;
use crate::problem::{Failure, Outcome, Problem as Reason};
use crate::progress::Reporter;
use crate::records;
use crate::records::common::{Files, Reason as Unread};
use crate::records::verity::Names;

/// Verifies the image on the command line.
pub fn run(args: &Verify) -> Result<Outcome, Failure> {
    let has_fs_options = args.fs_tree.hash_alg.is_some() || args.fs_tree.block_size.is_some();
    if has_fs_options && !args.fs_verity {
        return Err(Failure::usage(
            "--hash-alg and --block-size are meaningful only with --fs-verity",
        ));
    }
    let root = root(args).map_err(Failure::usage)?;
    let names = [&args.data, &args.hash_file];
    let options = args.source.confine(names)?;
    let when = args.source.progress.when();
    let reporter = Reporter::new(when, Some(1));
    reporter.begin(&args.data);
    let mut output = Output::new(args);
    let started = Instant::now();
    let verified = verify(args, &root, &options, &mut output, &reporter);
    reporter.end(&args.data, None);
    drop(reporter);
    match verified {
        Ok((summary, unreadable)) => {
            output.summary(&summary, &unreadable, started.elapsed().as_secs_f64())?;
            if !args.quiet {
                let reasons = unreadable::messages(&unreadable, |_| &args.data);
                reasons.iter().for_each(|reason| messages::message(reason));
            }
            Ok(if summary.is_clean() { Outcome::Clean } else { Outcome::Errors })
        }
        Err((name, problem)) => {
            problem.report(name);
            output.end()?;
            Ok(Outcome::Unknown)
        }
    }
}

/// Returns the root hash of the command line or its file.
fn root(args: &Verify) -> Result<Digest, String> {
    let Some(name) = &args.root_hash_file else {
        return args.root.ok_or_else(|| "the root hash is missing".to_owned());
    };
    let mut text = String::new();
    let file = std::fs::File::open(name);
    let read = file.and_then(|file| file.take(MAX_ROOT_FILE).read_to_string(&mut text));
    let shown = shown(name.as_os_str());
    read.map_err(|error| format!("--root-hash-file: {shown}: {}", messages::reason(&error)))?;
    text.trim().parse().map_err(|error| format!("--root-hash-file: {shown}: {error}"))
}

/// Verifies the image. The error has the name that it is about.
fn verify<'a>(
    args: &'a Verify,
    root: &Digest,
    options: &OpenOptions,
    output: &mut Output<'_>,
    reporter: &Reporter,
) -> Result<(Summary, Vec<Unreadable>), (&'a OsStr, Reason)> {
    let (data_name, hash_name) = (args.data.as_os_str(), args.hash_file.as_os_str());
    let of_data = |problem: Reason| (data_name, problem);
    let of_hash = |problem: Reason| (hash_name, problem);
    let hash_options = options.clone().format(Format::Raw).snapshot(None);
    let hashes = image::open::open(hash_name, &hash_options);
    let hashes = hashes.map_err(of_hash)?;
    let data = Data::open(data_name, options, &args.source).map_err(of_data)?;
    let stored = match (args.fs_verity, args.tree.no_superblock) {
        (true, _) => fs_tree(args, &data),
        (false, true) => bare_tree(args, &data),
        (false, false) => dm_tree(args, &*hashes),
    };
    let stored = stored.map_err(|reason| of_hash(reason.into()))?;
    let length = stored.data_length();
    let covered = Slice::new(data.selected.source().clone(), 0, length).expect("a part of it");
    output.contents = Contents::of(vec![Arc::new(covered)]);
    // The file of the data is longer if it has the tree as well, and options say what else is covered.
    let is_whole = !args.tree.no_superblock && !data.is_part() && data_name != hash_name;
    output.longer = (is_whole && data.size() > length).then_some((length, data.size()));
    output.size = length;
    output.levels = stored.layout().levels().len();
    let mut report = |finding: &Finding| output.finding(finding);
    let verifier = Verifier::new(&*hashes, &stored, root, &mut report);
    let verifier = verifier.map_err(|error| match error {
        Error::Empty => of_data(error.to_string().into()),
        error => of_hash(error.to_string().into()),
    })?;
    let verified = data.watched(length, reporter, |tuning, progress| {
        blksum::verity::verify(data.source(), verifier, tuning, progress)
    });
    verified.map_err(|error| match error {
        blksum::Error::Verity(Error::Stored(error)) => of_hash(Reason::of_image(&error, hash_name)),
        error => of_data(data.failed(&error)),
    })
}

/// Reads the superblock.
fn dm_tree(args: &Verify, hashes: &dyn Source) -> Result<StoredTree, String> {
    let tree = &args.tree;
    let is_given = tree.hash.is_some()
        || tree.data_block_size.is_some()
        || tree.hash_block_size.is_some()
        || tree.data_blocks.is_some()
        || args.source.salt.is_some();
    if is_given {
        return Err("the superblock says how the tree was made: with other options, use \
                    --no-superblock and --hash-offset"
            .into());
    }
    StoredTree::open(hashes, tree.hash_offset.unwrap_or(0)).map_err(|error| error.to_string())
}

/// Returns the tree that the options describe.
fn bare_tree(args: &Verify, data: &Data) -> Result<StoredTree, String> {
    let mut superblock = format::describe(&args.tree, args.source.salt.unwrap_or_default());
    if args.tree.data_blocks.is_none() {
        let covering = superblock.with_data_length(data.size());
        superblock = covering.map_err(|error| error.to_string())?;
    }
    StoredTree::bare(&superblock, args.tree.hash_offset.unwrap_or(0))
        .map_err(|error| format::reason(&error))
}

/// Returns the tree of fs-verity that the options describe.
fn fs_tree(args: &Verify, data: &Data) -> Result<StoredTree, String> {
    let parameters = digest::parameters(&args.fs_tree, &args.source)?;
    StoredTree::fs(&parameters, data.size()).map_err(|error| error.to_string())
}

/// Standard output.
struct Output<'a> {
    args: &'a Verify,
    contents: Contents,
    /// Bytes that the tree covers and bytes of the image, if it has more.
    longer: Option<(u64, u64)>,
    size: u64,
    /// Number of levels of the tree.
    levels: usize,
    limit: Limit,
    not_printed: u64,
    out: Out,
}

impl<'a> Output<'a> {
    fn new(args: &'a Verify) -> Self {
        let limit = Limit::new(args.max_errors);
        Self {
            args,
            contents: Contents::default(),
            longer: None,
            size: 0,
            levels: 0,
            limit,
            not_printed: 0,
            out: Out::unbuffered(),
        }
    }

    /// Prints a finding, within the limit.
    fn finding(&mut self, finding: &Finding) {
        if self.limit.is_used_up() {
            self.not_printed += 1;
            return;
        }
        let text = if self.args.json { self.object(finding) } else { self.text(finding) };
        if !self.limit.take(text.len()) {
            self.not_printed += 1;
        } else {
            self.out.write(&text);
        }
    }

    fn text(&self, finding: &Finding) -> String {
        let Finding { first, count, offset, .. } = *finding;
        let blocks = match count {
            1 => format!("block {first}"),
            _ => format!("blocks {first} to {}", first + count - 1),
        };
        let length = self.length(finding);
        let (data, hash) = (shown(&self.args.data), shown(&self.args.hash_file));
        let verb = |one: &'static str, many: &'static str| if count == 1 { one } else { many };
        let (name, what, problem) = match finding.problem {
            Problem::Data => (data, "data".to_owned(), verb("does not match", "do not match")),
            Problem::Unreadable => (data, "data".to_owned(), "cannot be read"),
            Problem::Unverified => {
                (data, "data".to_owned(), "cannot be verified: the tree does not match above")
            }
            Problem::Tree(level) if level + 1 == self.levels => {
                let what = if self.args.fs_verity { "digest" } else { "root hash" };
                let problem = format!("does not match the {what}");
                return format!(
                    "{hash}: hash level {level} {blocks} at {offset}, {length} bytes: {problem}\n"
                );
            }
            Problem::Tree(level) => {
                (hash, format!("hash level {level}"), verb("is damaged", "are damaged"))
            }
            Problem::Spare(level) => {
                (hash, format!("hash level {level}"), "has nonzero padding after its hashes")
            }
            _ => (data, "data".to_owned(), "does not match"),
        };
        let content = self.content(finding);
        let number = content.partition.map_or_else(String::new, |it| format!(", partition {it}"));
        let mut files = contents::text(&content);
        if !files.is_empty() {
            files.insert_str(0, ": ");
        }
        format!("{name}: {what} {blocks} at {offset}, {length} bytes{number}: {problem}{files}\n")
    }

    fn object(&self, finding: &Finding) -> String {
        let (problem, level) = match finding.problem {
            Problem::Unverified => ("unverified", None),
            Problem::Unreadable => ("unreadable", None),
            Problem::Tree(level) => ("tree", Some(level)),
            Problem::Spare(level) => ("spare", Some(level)),
            _ => ("data", None),
        };
        let content = self.content(finding);
        json::line(&records::verity::Error {
            r#type: "error",
            names: Flat(self.names()),
            problem,
            level,
            block: finding.first,
            blocks: finding.count,
            offset: finding.offset,
            length: self.length(finding),
            partition: content.partition,
            files: Flat(Files::new(&content)),
        })
    }

    /// Returns the fields with the names of both files.
    fn names(&self) -> Names<'_> {
        Names::new(&self.args.data, &self.args.hash_file)
    }

    /// Returns the length of the blocks, of which the last one of the data may be short.
    fn length(&self, finding: &Finding) -> u64 {
        match finding.problem {
            Problem::Tree(_) | Problem::Spare(_) => finding.length,
            _ => finding.length.min(self.size.saturating_sub(finding.offset)),
        }
    }

    /// Returns what is in blocks of data.
    fn content(&self, finding: &Finding) -> Content {
        match finding.problem {
            Problem::Data | Problem::Unreadable => {
                self.contents.find(finding.offset, self.length(finding))
            }
            Problem::Unverified => self.contents.partition(finding.offset),
            _ => Content::default(),
        }
    }

    /// Prints the summary. With --quiet only of something that is wrong.
    fn summary(
        mut self,
        summary: &Summary,
        unreadable: &[Unreadable],
        seconds: f64,
    ) -> io::Result<()> {
        if self.args.quiet && summary.is_clean() {
            return self.out.end();
        }
        let Summary { data_blocks, bad_data, unverified, bad_tree, unnamed, is_other_root, .. } =
            *summary;
        let text = if self.args.json {
            json::line(&records::verity::Summary {
                r#type: "summary",
                names: Flat(self.names()),
                data_blocks,
                bad_data_blocks: bad_data,
                unreadable_blocks: summary.unreadable,
                unverified_blocks: unverified,
                bad_hash_blocks: bad_tree,
                other_root: is_other_root,
                errors_not_printed: self.not_printed + unnamed,
                reasons: Unread::all(unreadable, |_| &self.args.data),
                seconds,
            })
        } else {
            let counts = [
                (bad_data, "do not match"),
                (summary.unreadable, "cannot be read"),
                (unverified, "cannot be verified"),
                // A tree that matches the data is not damaged.
                (if is_other_root { 0 } else { bad_tree }, "of the hash tree are damaged"),
            ];
            let counts = counts.iter().filter(|(count, _)| *count > 0);
            let mut parts: Vec<_> = counts.map(|(count, what)| format!("{count} {what}")).collect();
            if is_other_root {
                let what = if self.args.fs_verity { "digest" } else { "root hash" };
                let hash = shown(&self.args.hash_file);
                parts.push(format!("as the {what} differs from {hash}, which matches the data"));
            }
            if self.not_printed > 0 {
                parts.push(format!("{} errors are not printed (--max-errors)", self.not_printed));
            }
            if unnamed > 0 {
                parts.push(format!("{unnamed} of these are not named"));
            }
            let result = if parts.is_empty() { "all match".to_owned() } else { parts.join(", ") };
            let data = shown(&self.args.data);
            let note = self.longer.filter(|_| !summary.is_clean()).map(|(covered, size)| {
                format!(
                    "{data}: the tree is of {covered} bytes, the image has {size}: is it of a partition?\n"
                )
            });
            note.unwrap_or_default() + &format!("{data}: {data_blocks} blocks: {result}\n")
        };
        self.out.write(&text);
        self.out.end()
    }

    /// Ends the output without a summary.
    fn end(self) -> io::Result<()> {
        self.out.end()
    }
}

/// Maximum length of a file with a root hash.
/// Limit in bytes.
const MAX_ROOT_FILE: u64 = 4096;
