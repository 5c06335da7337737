//! `blkhash verity digest`: the fs-verity digest of images, their Merkle tree and descriptor.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use blkhash::{Algorithm, BlockSize, Construction, Digest, Parameters};
use blkimage::{Format, Image, OpenOption, OpenOptions};
use blkrecord::Name;
use blkverity::{StoredTree, TreeFile};

use super::args::{DigestArgs, FsTree};
use super::format::failed;
use crate::blkhash::output::Output;
use crate::blkhash::source::{Data, shown};
use crate::blkhash::source_args::SourceArgs;
use crate::json;
use crate::messages;
use crate::outputs::mode_of_images;
use crate::problem::{Failure, Outcome, Problem};
use crate::progress::Reporter;
use crate::records;
use crate::stdio::Stdout;

/// Prints the digest of every image on the command line.
pub fn run(args: &DigestArgs) -> Result<Outcome, Failure> {
    let parameters = parameters(&args.tree, &args.source).map_err(Failure::usage)?;
    let has_output = args.out_merkle_tree.is_some() || args.out_descriptor.is_some();
    if has_output && args.names.len() > 1 {
        return Err(Failure::usage("--out-merkle-tree and --out-descriptor are for one image"));
    }
    let mode = mode_of_images(args.names.iter().map(OsString::as_os_str));
    let open = |option, name: &Option<PathBuf>| {
        Output::open(option, name.as_deref(), mode).map_err(Failure::usage)
    };
    let outputs = Outputs {
        tree: open("--out-merkle-tree", &args.out_merkle_tree)?,
        descriptor: open("--out-descriptor", &args.out_descriptor)?,
    };
    let options = args.source.confine(&args.names)?;
    let when = args.source.progress.when();
    let reporter = Reporter::new(when, Some(args.names.len() as u64));
    let mut outcome = Outcome::Clean;
    for name in &args.names {
        reporter.begin(name);
        match digest(name, &parameters, args, &options, &outputs, &reporter) {
            Ok(Found { digest, size, format }) => {
                if !args.quiet {
                    note(name, format, &args.source);
                }
                print(name, &digest, size, &parameters, args)?;
            }
            Err(problem) => {
                problem.report(name);
                outcome = Outcome::Unknown;
            }
        }
        reporter.end(name, None);
    }
    Ok(outcome)
}

/// Returns the parameters of a tree of fs-verity.
pub fn parameters(tree: &FsTree, source: &SourceArgs) -> Result<Parameters, String> {
    let algorithm = tree.hash_alg.unwrap_or(Algorithm::Sha256);
    let block_size = tree.block_size.unwrap_or(BlockSize::PAGE);
    Parameters::new(algorithm, Construction::FsVerity, block_size)
        .and_then(|parameters| parameters.with_salt(source.salt.unwrap_or_default()))
        .map_err(|error| error.to_string())
}

/// The files to write.
struct Outputs {
    tree: Option<Output>,
    descriptor: Option<Output>,
}

impl Outputs {
    fn check_apart(&self, image: &Image) -> Result<(), String> {
        if let Some(descriptor) = &self.descriptor {
            descriptor.check_apart(image, self.tree.as_ref().and_then(Output::identity))?;
        }
        self.tree.as_ref().map_or(Ok(()), |tree| tree.check_apart(image, None))
    }
}

/// The digest of an image, and what it is of.
struct Found {
    digest: Digest,
    /// Size of the content in bytes.
    size: u64,
    format: Format,
}

/// Returns the digest of an image.
fn digest(
    name: &OsStr,
    parameters: &Parameters,
    args: &DigestArgs,
    options: &OpenOptions,
    outputs: &Outputs,
    reporter: &Reporter,
) -> Result<Found, Problem> {
    let data = Data::open(name, options, &args.source)?;
    let (size, format) = (data.size(), data.image().format());
    if outputs.tree.is_none() && outputs.descriptor.is_none() {
        return Ok(Found { digest: data.checksum(parameters, reporter)?, size, format });
    }
    outputs.check_apart(data.image())?;
    let stored = StoredTree::fs(parameters, size).map_err(|error| error.to_string())?;
    if let Some(output) = &outputs.tree {
        output.empty()?;
    }
    let root = data.watched(size, reporter, |tuning, progress| match &outputs.tree {
        None => blksum::verity::root(data.source(), &stored, tuning, progress),
        Some(output) => {
            let file = TreeFile::new(&output.file, &stored);
            blksum::verity::write(data.source(), file, tuning, progress)
        }
    });
    let root = root.map_err(|error| failed(&data, error, "--out-merkle-tree"))?;
    if let Some(output) = &outputs.tree {
        output.keep();
    }
    if let Some(output) = &outputs.descriptor {
        let descriptor = stored.descriptor(&root).ok_or("fs-verity has no such digest")?;
        output.write(descriptor.as_bytes())?;
    }
    Ok(Found { digest: stored.digest(&root), size, format })
}

/// Says that `fsverity digest` prints another digest for this image, unless an option shows that its content is meant.
fn note(name: &OsStr, format: Format, source: &SourceArgs) {
    let opening = &source.opening;
    let is_meant = opening.is_given(OpenOption::Format)
        || opening.open.snapshot.is_some()
        || source.partition.is_some();
    if is_meant || format == Format::Raw {
        return;
    }
    let text = format!("{format}: digest of the content; -f raw prints the digest of the file");
    messages::remark_of(name.as_bytes(), &text);
}

fn print(
    name: &OsStr,
    digest: &Digest,
    size: u64,
    parameters: &Parameters,
    args: &DigestArgs,
) -> std::io::Result<()> {
    let algorithm = parameters.algorithm();
    let hex = if args.for_builtin_sig { signed(digest, algorithm) } else { digest.to_string() };
    let line = match () {
        () if args.json => json::text(&records::verity::Digest {
            name: Name::new(name),
            digest: digest.to_string(),
            hash: algorithm.name(),
            block_size: parameters.block_size().get(),
            salt: parameters.salt().to_string(),
            virtual_size: size,
        }),
        () if args.compact => hex,
        () if args.for_builtin_sig => format!("{hex} {}", shown(name)),
        () => format!("{algorithm}:{hex} {}", shown(name)),
    };
    Stdout.write_all((line + "\n").as_bytes())
}

/// Returns the digest as the kernel's built-in signatures sign it, in hexadecimal.
fn signed(digest: &Digest, algorithm: Algorithm) -> String {
    let number: u16 = if algorithm == Algorithm::Sha256 { 1 } else { 2 };
    let size = digest.as_bytes().len() as u16;
    let head = [b"FSVerity".as_slice(), &number.to_le_bytes(), &size.to_le_bytes()].concat();
    json::hex(&head) + &digest.to_string()
}
