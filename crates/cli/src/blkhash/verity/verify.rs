//! `blkhash verity verify`: compares an image with its tree, and finds every block that does not match.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::time::Instant;

use blkhash::{Digest, Digester, Parameters};
use blkimage::{Format, OpenOptions, Source};
use blkverity::{Finding, Layout, Problem, Summary, Superblock, Verifier};
use serde_json::{Value, json};

use super::args::Verify;
use super::contents::{Contents, Place};
use super::{digest, format};
use crate::blkhash::limit::Limit;
use crate::blkhash::source::{Data, fail, shown};
use crate::image;
use crate::problem::{Failure, Outcome};
use crate::progress::Reporter;
use crate::stdio::Stdout;
use crate::{json, messages};

/// Verifies the image on the command line.
pub fn run(args: &Verify) -> Result<Outcome, Failure> {
    let refused = |reason: String| Failure::usage(reason);
    let has_fs_options = args.fs_tree.hash_alg.is_some() || args.fs_tree.block_size.is_some();
    if has_fs_options && !args.fs_verity {
        return Err(refused(
            "--hash-alg and --block-size are meaningful only with --fs-verity".into(),
        ));
    }
    let root = root(args).map_err(refused)?;
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
        Ok(summary) => {
            output.summary(&summary, started.elapsed().as_secs_f64())?;
            Ok(if summary.is_clean() { Outcome::Clean } else { Outcome::Errors })
        }
        Err((name, reason)) => {
            fail(name, &reason);
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

/// The tree, as its options or its superblock describe it.
struct Stored {
    parameters: Parameters,
    layout: Layout,
    /// Length of the data that it covers.
    data_length: u64,
}

/// Verifies the image. The error is a reason, and the name that it is about.
fn verify<'a>(
    args: &'a Verify,
    root: &Digest,
    options: &OpenOptions,
    output: &mut Output<'_>,
    reporter: &Reporter,
) -> Result<Summary, (&'a OsStr, String)> {
    let (data_name, hash_name) = (args.data.as_os_str(), args.hash_file.as_os_str());
    let of_data = |reason: String| (data_name, reason);
    let of_hash = |reason: String| (hash_name, reason);
    let hash_options = options.clone().format(Format::Raw).snapshot(None);
    let hashes = image::open::open(hash_name, &hash_options);
    let hashes = hashes.map_err(|problem| of_hash(problem.into()))?;
    let mut data = Data::open(data_name, options, &args.source).map_err(of_data)?;
    let stored = match (args.fs_verity, args.tree.no_superblock) {
        (true, _) => fs_tree(args, &data),
        (false, true) => bare_tree(args, &data),
        (false, false) => dm_tree(args, &*hashes),
    };
    let stored = stored.map_err(of_hash)?;
    let algorithm = stored.parameters.algorithm();
    if root.as_bytes().len() != algorithm.digest_size() {
        let size = 2 * algorithm.digest_size();
        return Err(of_hash(format!("a root hash of {algorithm} has {size} digits")));
    }
    let image_size = data.size();
    data.cut(stored.data_length).map_err(of_data)?;
    // One block of data has no tree, and the file may end before the place of one.
    if stored.layout.blocks() > 0 && stored.layout.end() > hashes.size() {
        let (end, size) = (stored.layout.end(), hashes.size());
        return Err(of_hash(format!(
            "is cut off: it has {size} bytes, and its tree ends at {end}"
        )));
    }
    output.contents = Contents::of(&data);
    // The file of the data is longer if it has the tree as well, and options say what else is covered.
    let is_whole = !args.tree.no_superblock && !data.is_part() && data_name != hash_name;
    output.longer =
        (is_whole && image_size > stored.data_length).then_some((stored.data_length, image_size));
    output.size = data.size();
    output.levels = stored.layout.levels().len();
    let digester = Digester::new(algorithm);
    let leaf = stored.parameters.leaf(&digester);
    let size = data.size();
    let is_root = |found: &Digest| match args.fs_verity {
        false => found == root,
        true => digest::describe(&stored.parameters, found, size)
            .is_some_and(|descriptor| digester.digest(descriptor.as_bytes()) == *root),
    };
    let mut report = |finding: &Finding| output.finding(finding);
    let mut verifier = Verifier::new(&*hashes, stored.layout, &leaf, &is_root, &mut report);
    if size > 0 {
        let target = shown(hash_name);
        data.tree_digests(&stored.parameters, &mut verifier, &target, reporter).map_err(of_data)?;
    } else if !is_root(&Digest::try_from(&[0; 64][..algorithm.digest_size()]).expect("a digest")) {
        return Err(of_data("is empty, and the digest is not that of an empty image".into()));
    }
    hashes.check_unchanged().map_err(|error| of_hash(error.to_string()))?;
    Ok(verifier.finish())
}

/// Reads the superblock.
fn dm_tree(args: &Verify, hashes: &dyn Source) -> Result<Stored, String> {
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
    let offset = tree.hash_offset.unwrap_or(0);
    if offset.checked_add(Superblock::SIZE as u64).is_none_or(|end| end > hashes.size()) {
        return Err(format!(
            "no superblock of dm-verity at {offset}: it ends at {}",
            hashes.size()
        ));
    }
    let mut bytes = [0; Superblock::SIZE];
    hashes.read_exact_at(&mut bytes, offset).map_err(|error| error.to_string())?;
    let superblock = Superblock::parse(&bytes).map_err(|error| format!("at {offset}: {error}"))?;
    let tree = super::args::DmTree {
        hash: Some(superblock.algorithm),
        data_block_size: Some(superblock.data_block_size),
        hash_block_size: Some(superblock.hash_block_size),
        data_blocks: Some(superblock.data_blocks),
        hash_offset: Some(offset),
        no_superblock: false,
    };
    let parameters = format::parameters(&tree, superblock.salt)?;
    let layout = superblock.layout(offset).ok_or("its tree would be too large")?;
    Ok(Stored { parameters, layout, data_length: superblock.data_length() })
}

/// Returns the tree that the options describe.
fn bare_tree(args: &Verify, data: &Data) -> Result<Stored, String> {
    let parameters = format::parameters(&args.tree, args.source.salt.unwrap_or_default())?;
    let data_block = u64::from(parameters.block_size());
    let blocks = match args.tree.data_blocks {
        Some(blocks) => blocks,
        None => {
            parameters.check_length(data.size()).map_err(|error| error.to_string())?;
            data.size() / data_block
        }
    };
    let data_length = blocks.checked_mul(data_block).ok_or("--data-blocks: too many")?;
    let layout = format::bare_layout(&args.tree, parameters.algorithm(), blocks)?;
    Ok(Stored { parameters, layout, data_length })
}

/// Returns the tree of fs-verity that the options describe.
fn fs_tree(args: &Verify, data: &Data) -> Result<Stored, String> {
    let parameters = digest::parameters(&args.fs_tree, &args.source)?;
    let block_size = args.fs_tree.block_size.unwrap_or(blkhash::BlockSize::PAGE);
    let leaves = data.size().div_ceil(block_size.into());
    let layout = Layout::new(parameters.algorithm(), block_size, 0, leaves);
    let layout = layout.ok_or("its tree would be too large")?;
    Ok(Stored { parameters, layout, data_length: data.size() })
}

/// Standard output. A write error is kept until the end.
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
    result: io::Result<()>,
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
            result: Ok(()),
        }
    }

    /// Prints a finding, within the limit.
    fn finding(&mut self, finding: &Finding) {
        let text = if self.args.json { self.object(finding) } else { self.text(finding) };
        if !self.limit.take(text.len()) {
            self.not_printed += 1;
        } else if self.result.is_ok() {
            self.result = Stdout.write_all(text.as_bytes());
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
            Problem::Spare(level) => (
                hash,
                format!("hash level {level}"),
                "has bytes beside its hashes that are not zero",
            ),
            _ => (data, "data".to_owned(), "does not match"),
        };
        let place = self.place(finding);
        let number = place.partition.map_or_else(String::new, |it| format!(", partition {it}"));
        let files = place.text();
        format!("{name}: {what} {blocks} at {offset}, {length} bytes{number}: {problem}{files}\n")
    }

    fn object(&self, finding: &Finding) -> String {
        let (problem, level) = match finding.problem {
            Problem::Unverified => ("unverified", None),
            Problem::Tree(level) => ("tree", Some(level)),
            Problem::Spare(level) => ("spare", Some(level)),
            _ => ("data", None),
        };
        let place = self.place(finding);
        let mut object = json!({
            "type": "error",
            "problem": problem,
            "level": level,
            "block": finding.first,
            "blocks": finding.count,
            "offset": finding.offset,
            "length": self.length(finding),
            "partition": place.partition,
            "metadata": place.is_metadata,
            "files": place.names(),
            "files_complete": !place.is_partial,
        });
        self.name(&mut object);
        json::text(&object) + "\n"
    }

    /// Adds the names of both files to an object.
    fn name(&self, object: &mut Value) {
        json::insert_name(object, "name", &self.args.data);
        json::insert_name(object, "hash_file", self.args.hash_file.as_os_str());
    }

    /// Returns the length of the blocks, of which the last one of the data may be short.
    fn length(&self, finding: &Finding) -> u64 {
        match finding.problem {
            Problem::Tree(_) | Problem::Spare(_) => finding.length,
            _ => finding.length.min(self.size.saturating_sub(finding.offset)),
        }
    }

    /// Returns what lies in blocks of data.
    fn place(&self, finding: &Finding) -> Place {
        match finding.problem {
            Problem::Data => self.contents.find(finding.offset, self.length(finding)),
            Problem::Unverified => self.contents.find_partition(finding.offset),
            _ => Place::default(),
        }
    }

    /// Prints the summary. With --quiet only of something that is wrong.
    fn summary(self, summary: &Summary, seconds: f64) -> io::Result<()> {
        if self.args.quiet && summary.is_clean() {
            return self.result;
        }
        let Summary { data_blocks, bad_data, unverified, bad_tree, unnamed, is_other_root, .. } =
            *summary;
        let text = if self.args.json {
            let mut object: Value = json!({
                "type": "summary",
                "data_blocks": data_blocks,
                "bad_data_blocks": bad_data,
                "unverified_blocks": unverified,
                "bad_hash_blocks": bad_tree,
                "other_root": is_other_root,
                "errors_not_printed": self.not_printed + unnamed,
                "seconds": seconds,
            });
            self.name(&mut object);
            json::text(&object) + "\n"
        } else {
            let counts = [
                (bad_data, "do not match"),
                (unverified, "cannot be verified"),
                // A tree that matches the data is not damaged.
                (if is_other_root { 0 } else { bad_tree }, "of the hash tree are damaged"),
            ];
            let counts = counts.iter().filter(|(count, _)| *count > 0);
            let mut parts: Vec<_> = counts.map(|(count, what)| format!("{count} {what}")).collect();
            if is_other_root {
                let what = if self.args.fs_verity { "digest" } else { "root hash" };
                let hash = shown(&self.args.hash_file);
                parts.push(format!("as the {what} is not that of {hash}, which matches the data"));
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
        self.result.and_then(|()| Stdout.write_all(text.as_bytes()))
    }

    /// Ends the output without a summary.
    fn end(self) -> io::Result<()> {
        self.result
    }
}

/// Maximum length of a file with a root hash in bytes.
const MAX_ROOT_FILE: u64 = 4096;
