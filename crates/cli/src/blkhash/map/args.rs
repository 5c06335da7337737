//! The command line of `blkhash map`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use blkhash::{Algorithm, BlockSize, Construction};
use blkindex::Format;
use blksum::changes::{Form, Output};
use blksum::map::Sample;
use clap::{ArgGroup, Subcommand, ValueHint};

use super::part::Shard;
use crate::blkhash::range::Range;
use crate::blkhash::source_args::SourceArgs;
use crate::image::args::Opening;
use crate::map::change_list::form_help;
use crate::progress::ProgressArgs;
use crate::values::{Count, Named, one_of, parse_seconds, parse_size};

/// `blkhash map`
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands of `blkhash map`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make the map of an image
    #[command(
        override_usage = "blkhash map create [OPTION]... IMAGE",
        mut_arg("salt", |salt| salt.help(SALT_HELP)),
        mut_arg("max-zeros", |size| size.help(MAX_ZEROS_HELP)),
        after_help = CREATE_HELP
    )]
    Create(Box<Create>),
    /// Show what maps hold
    #[command(override_usage = "blkhash map show [OPTION]... MAP...")]
    Show(Show),
    /// Show what each state of a map changed, and when a part of the image changed
    #[command(override_usage = "blkhash map history [OPTION]... MAP")]
    History(History),
    /// Check every byte of maps
    #[command(
        override_usage = "blkhash map check [OPTION]... MAP...",
        after_help = CHECK_HELP
    )]
    Check(Check),
    /// Print checksums of images from their maps, as blksum prints them
    #[command(override_usage = "blkhash map checksum [OPTION]... MAP...")]
    Checksum(Checksum),
    /// Compare an image with its map, and find every block that differs
    #[command(
        override_usage = "blkhash map verify [OPTION]... MAP IMAGE",
        mut_arg("salt", |salt| salt.hide(true)),
        mut_arg("max-zeros", |size| size.help(MAX_ZEROS_HELP)),
        after_help = COMPARE_HELP
    )]
    Verify(Box<Verify>),
    /// Find the blocks that differ between two maps, two images, or a map and an image
    #[command(
        override_usage = "blkhash map diff [OPTION]... LEFT RIGHT",
        mut_arg("salt", |salt| salt.hide(true)),
        mut_arg("max-zeros", |size| size.help(MAX_ZEROS_HELP)),
        after_help = COMPARE_HELP
    )]
    Diff(Box<Diff>),
    /// Bring a map up to date by reading only what changed
    #[command(
        override_usage = "blkhash map update (--bitmap NAME | --changes FILE | --overlay | --reflink FILE) [OPTION]... MAP IMAGE",
        mut_arg("salt", |salt| salt.hide(true)),
        mut_arg("max-zeros", |size| size.help(MAX_ZEROS_HELP)),
        after_help = UPDATE_HELP
    )]
    Update(Box<Update>),
    /// Find changes that a list of changes does not have
    #[command(
        override_usage = "blkhash map audit (--bitmap NAME | --changes FILE | --overlay | --reflink FILE) [OPTION]... MAP (IMAGE | MAP)",
        mut_arg("salt", |salt| salt.hide(true)),
        mut_arg("max-zeros", |size| size.help(MAX_ZEROS_HELP)),
        after_help = AUDIT_HELP
    )]
    Audit(Box<Audit>),
    /// Print what changed in an image, by a bitmap, an older state, or a list in another format
    #[command(
        override_usage = "blkhash map changes (--bitmap NAME | --changes FILE | --overlay | --reflink FILE) [OPTION]... IMAGE",
        mut_arg("salt", |salt| salt.hide(true)),
        mut_arg("max-zeros", |size| size.hide(true))
    )]
    Changes(Box<Changes>),
    /// List the bitmaps of changed blocks in images
    #[command(override_usage = "blkhash map bitmaps [OPTION]... IMAGE...")]
    Bitmaps(Box<Bitmaps>),
    /// Make one map from the maps of parts of an image
    #[command(
        override_usage = "blkhash map merge [OPTION]... -o FILE PART...",
        after_help = MERGE_HELP
    )]
    Merge(Merge),
    /// Seal maps with a key, so that changes without the key are found
    #[command(override_usage = "blkhash map seal --key-file FILE MAP...")]
    Seal(Seal),
    /// Count blocks that occur more than once
    #[command(override_usage = "blkhash map dups [OPTION]... MAP...")]
    Dups(Dups),
    /// Write a map in another format
    #[command(override_usage = "blkhash map export --to FORMAT [OPTION]... MAP")]
    Export(Export),
    /// Make the map of an index of blocks of another program
    #[command(override_usage = "blkhash map import [OPTION]... FILE", after_help = IMPORT_HELP)]
    Import(Import),
}

/// `blkhash map create`
#[derive(Debug, clap::Args)]
pub struct Create {
    /// Image, device, URL or NBD URI
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub image: OsString,

    /// Write the map to FILE; - is standard output; {shard} becomes K-of-N [default: IMAGE.blkmap]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<OsString>,

    /// Digest algorithm of the blocks [default: sha256]
    #[arg(
        short, long, value_name = "NAME",
        value_parser = Named::<Algorithm>::of(map_digest_names), hide_possible_values = true
    )]
    pub digest: Option<Algorithm>,

    /// Size of a block, a power of two from 512 to 64M [default: 64K]
    #[arg(long, value_name = "SIZE", value_parser = block_size)]
    pub block_size: Option<BlockSize>,

    /// Only the Kth of N parts; auto/N takes K from a job of Kubernetes or Slurm
    #[arg(long, value_name = "K/N", value_parser = Shard::from_str)]
    pub shard: Option<Shard>,

    /// Continue an unfinished map
    #[arg(long)]
    pub resume: bool,

    /// Do nothing if the map belongs to the image as it is, by the sizes and times of its files
    #[arg(long)]
    pub if_changed: bool,

    /// Overwrite a map that exists
    #[arg(long)]
    pub force: bool,

    /// Also print the checksum [without a value: streams:4]. Repeatable
    #[arg(
        long, value_name = "CONSTRUCTION",
        num_args = 0..=1, require_equals = true, default_missing_value = "streams:4",
        conflicts_with = "shard"
    )]
    pub checksum: Vec<Construction>,

    /// Seal the map with the key in FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,

    /// Leave out names, sizes and times of the files of the image
    #[arg(long)]
    pub no_source: bool,

    /// Seconds between two checkpoints, from which --resume continues [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub checkpoint: Option<Duration>,

    #[command(flatten)]
    pub source: SourceArgs,
}

/// `blkhash map show`
#[derive(Debug, clap::Args)]
pub struct Show {
    /// Maps; MAP@N is the state after commit N
    #[arg(value_name = "MAP", value_hint = ValueHint::FilePath, required = true)]
    pub maps: Vec<OsString>,

    /// List the commits, the last one first
    #[arg(long, conflicts_with_all = ["list", "id"])]
    pub log: bool,

    /// List the runs of pages with digests, and of those with zeros
    #[arg(long, conflicts_with = "id")]
    pub list: bool,

    /// Print only the content id
    #[arg(long)]
    pub id: bool,

    /// Write one JSON object per line
    #[arg(long, conflicts_with = "id")]
    pub json: bool,
}

/// `blkhash map history`
#[derive(Debug, clap::Args)]
pub struct History {
    /// Map; MAP@N is the state after commit N
    #[arg(value_name = "MAP", value_hint = ValueHint::FilePath)]
    pub map: OsString,

    /// Only the blocks with these bytes, such as 1G-2G, and the states that changed one of them
    #[arg(long, value_name = "FROM-TO", value_parser = Range::from_str)]
    pub range: Option<Range>,

    /// Check the seals with the key in FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,

    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// `blkhash map check`
#[derive(Debug, clap::Args)]
pub struct Check {
    /// Maps
    #[arg(value_name = "MAP", value_hint = ValueHint::FilePath, required = true)]
    pub maps: Vec<OsString>,

    /// Check the seal with the key in FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,

    /// Print only what is wrong
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub progress: ProgressArgs,
}

/// `blkhash map checksum`
#[derive(Debug, clap::Args)]
pub struct Checksum {
    /// Maps
    #[arg(value_name = "MAP", value_hint = ValueHint::FilePath, required = true)]
    pub maps: Vec<OsString>,

    /// Construction of the checksum [default: streams:4]. Repeatable
    #[arg(long, value_name = "CONSTRUCTION")]
    pub construction: Vec<Construction>,

    /// Print lines with a tag, which names digest, construction and block size
    #[arg(long)]
    pub tag: bool,

    /// Check the seal with the key in FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,
}

/// `blkhash map verify`
#[derive(Debug, clap::Args)]
pub struct Verify {
    /// Map
    #[arg(value_name = "MAP", value_hint = ValueHint::FilePath)]
    pub map: OsString,

    /// Image, device, URL or NBD URI
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub image: OsString,

    /// Only the Kth of N parts
    #[arg(long, value_name = "K/N", value_parser = Shard::from_str, conflicts_with = "range")]
    pub shard: Option<Shard>,

    /// Only the blocks with these bytes, such as 1G-2G
    #[arg(long, value_name = "FROM-TO", value_parser = Range::from_str)]
    pub range: Option<Range>,

    /// Check the seal of the map with the key in FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,

    /// Ignore trailing zeros of the larger image
    #[arg(long)]
    pub ignore_zero_tail: bool,

    /// Ignore what IMAGE has past the end of MAP, as on a larger card
    #[arg(long, conflicts_with_all = ["ignore_zero_tail", "partition"])]
    pub ignore_tail: bool,

    /// Ignore blocks that lie in free space of the image's file systems
    #[arg(long)]
    pub ignore_free: bool,

    /// Ignore blocks that the map does not know
    #[arg(long)]
    pub ignore_unknown: bool,

    #[command(flatten)]
    pub output: Report,

    #[command(flatten)]
    pub source: SourceArgs,
}

/// `blkhash map diff`
#[derive(Debug, clap::Args)]
pub struct Diff {
    /// Map, MAP@N, or image: the older state
    #[arg(value_name = "LEFT", value_hint = ValueHint::FilePath)]
    pub left: OsString,

    /// Map, MAP@N, or image: the newer state
    #[arg(value_name = "RIGHT", value_hint = ValueHint::FilePath)]
    pub right: OsString,

    /// Size of a block if both are images, a power of two from 512 to 64M [default: 64K]
    #[arg(long, value_name = "SIZE", value_parser = block_size)]
    pub block_size: Option<BlockSize>,

    /// Ignore trailing zeros of the larger image
    #[arg(long)]
    pub ignore_zero_tail: bool,

    /// Ignore what RIGHT, an image, has past the end of LEFT, as on a larger card
    #[arg(long, conflicts_with_all = ["ignore_zero_tail", "partition"])]
    pub ignore_tail: bool,

    /// Ignore blocks that lie in free space of the image's file systems
    #[arg(long)]
    pub ignore_free: bool,

    #[command(flatten)]
    pub output: Report,

    #[command(flatten)]
    pub source: SourceArgs,
}

/// The parts of a comparison that are printed.
#[derive(Clone, Debug, clap::Args)]
pub struct Report {
    /// Print nothing. Only the exit status says whether there are differences
    #[arg(short, long, conflicts_with_all = ["extents", "picture", "json"])]
    pub quiet: bool,

    /// Print only the extents that differ: offset and length in bytes, one per line. With --partition, offsets are those
    /// in the partition
    #[arg(long, conflicts_with_all = ["picture", "json"])]
    pub extents: bool,

    /// Draw a picture on the terminal, or to FILE as SVG
    #[arg(
        long, value_name = "FILE", conflicts_with = "json", num_args = 0..=1, require_equals = true,
        default_missing_value = "", value_hint = ValueHint::FilePath
    )]
    pub picture: Option<OsString>,

    /// Print at most N extents, and count the rest; 0 prints all [default: 100, all with --extents and --json]
    #[arg(long, value_name = "N", value_parser = Count::of(0..=1_000_000_000_u64))]
    pub max_errors: Option<u64>,

    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// What tells the changes of an image.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group(ArgGroup::new("tracker").required(true).args(["bitmap", "changes", "overlay", "reflink"])))]
pub struct Tracker {
    /// The bitmap NAME in a qcow2 image, or of an NBD server
    #[arg(long, value_name = "NAME")]
    pub bitmap: Option<String>,

    /// The list of changed blocks in FILE; - is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub changes: Option<OsString>,

    #[arg(
        long, value_name = "FORM", requires = "changes",
        help = form_help(), value_parser = Named::<Form>::of(Form::names), hide_possible_values = true
    )]
    pub changes_format: Option<Form>,

    /// What the image stores itself, on top of the backing file that the map is of
    #[arg(long)]
    pub overlay: bool,

    /// Everything that the image does not share on btrfs or XFS with FILE, the older state that the map is of
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub reflink: Option<OsString>,
}

/// `blkhash map update`
#[derive(Debug, clap::Args)]
pub struct Update {
    /// Map
    #[arg(value_name = "MAP", value_hint = ValueHint::FilePath)]
    pub map: OsString,

    /// Image, device, URL or NBD URI
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub image: OsString,

    #[command(flatten)]
    pub tracker: Tracker,

    /// Write a map of its own to FILE [default: a new commit is appended to MAP]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<OsString>,

    /// Also read this share of the blocks that are not called changed, in percent [default: 0.1]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub sample: Option<Sample>,

    /// Update although nothing shows that the bitmap, overlay or older state tells all changes since the map was made
    #[arg(long)]
    pub trust: bool,

    /// Overwrite a map that exists
    #[arg(long, requires = "output")]
    pub force: bool,

    /// Seal the map with the key in FILE, with which it must be sealed
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,

    /// Leave out names, sizes and times of the files of the image
    #[arg(long)]
    pub no_source: bool,

    /// Print nothing
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,

    /// Write a JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub source: SourceArgs,
}

/// `blkhash map audit`
#[derive(Debug, clap::Args)]
pub struct Audit {
    /// Map or MAP@N: the state before the changes
    #[arg(value_name = "MAP", value_hint = ValueHint::FilePath)]
    pub map: OsString,

    /// Image, map or MAP@N: the state after the changes
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub image: OsString,

    #[command(flatten)]
    pub tracker: Tracker,

    #[command(flatten)]
    pub output: Report,

    #[command(flatten)]
    pub source: SourceArgs,
}

/// `blkhash map changes`
#[derive(Debug, clap::Args)]
pub struct Changes {
    /// Image, device, URL or NBD URI
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub image: OsString,

    #[command(flatten)]
    pub tracker: Tracker,

    /// Write this form: lines, json (an array) or nbdinfo [default: lines]
    #[arg(
        long, value_name = "FORM", conflicts_with = "json",
        value_parser = Named::<Output>::of(Output::names), hide_possible_values = true
    )]
    pub to: Option<Output>,

    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub source: SourceArgs,
}

/// `blkhash map bitmaps`
#[derive(Debug, clap::Args)]
pub struct Bitmaps {
    /// Images
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath, required = true)]
    pub images: Vec<OsString>,

    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub opening: Opening,
}

/// `blkhash map merge`
#[derive(Debug, clap::Args)]
pub struct Merge {
    /// Maps of parts of one image
    #[arg(value_name = "PART", value_hint = ValueHint::FilePath, required = true)]
    pub parts: Vec<OsString>,

    /// The parts are N shards, and {shard} in PART stands for 1-of-N to N-of-N. Shards that are not there or not finished
    /// are missing
    #[arg(long, value_name = "N", value_parser = Count::of(1..=1_000_000_u64))]
    pub shards: Option<u64>,

    /// Write the map to FILE; - is standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: OsString,

    /// Overwrite a map that exists
    #[arg(long)]
    pub force: bool,

    /// Seal the map with the key in FILE, with which all parts must be sealed
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,

    #[command(flatten)]
    pub progress: ProgressArgs,
}

/// `blkhash map seal`
#[derive(Debug, clap::Args)]
pub struct Seal {
    /// Maps
    #[arg(value_name = "MAP", value_hint = ValueHint::FilePath, required = true)]
    pub maps: Vec<OsString>,

    /// File with the key, 16 to 4096 bytes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: PathBuf,
}

/// `blkhash map dups`
#[derive(Debug, clap::Args)]
pub struct Dups {
    /// Maps with the same digest and block size
    #[arg(value_name = "MAP", value_hint = ValueHint::FilePath, required = true)]
    pub maps: Vec<OsString>,

    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// `blkhash map export`
#[derive(Debug, clap::Args)]
pub struct Export {
    /// Map
    #[arg(value_name = "MAP", value_hint = ValueHint::FilePath)]
    pub map: OsString,

    /// Format
    #[arg(
        long, value_name = "FORMAT", required = true,
        help = format!("Format: {}", one_of(&written_names())),
        value_parser = Named::with(written_names, Format::written), hide_possible_values = true
    )]
    pub to: Format,

    /// Write to FILE [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// `blkhash map import`
#[derive(Debug, clap::Args)]
pub struct Import {
    /// Index
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: OsString,

    /// Format of the index
    #[arg(
        long, value_name = "FORMAT",
        help = format!("Format of the index: {} [default: as recognised]", one_of(&index_names())),
        value_parser = Named::<Format>::of(index_names), hide_possible_values = true
    )]
    pub from: Option<Format>,

    /// Write the map to FILE; - is standard output [default: FILE.blkmap]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<OsString>,

    /// Digest algorithm, if the index does not name it [default: sha256]
    #[arg(
        short, long, value_name = "NAME",
        value_parser = Named::<Algorithm>::of(map_digest_names), hide_possible_values = true
    )]
    pub digest: Option<Algorithm>,

    /// Size of a block, if the index does not have it [default: 4K for raw]
    #[arg(long, value_name = "SIZE", value_parser = block_size)]
    pub block_size: Option<BlockSize>,

    /// Size of the image, if the index does not have it [default: the end of the blocks]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,

    /// Overwrite a map that exists
    #[arg(long)]
    pub force: bool,

    /// Seal the map with the key in FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,
}

fn written_names() -> Vec<&'static str> {
    let written = Format::ALL.iter().filter(|format| format.is_written());
    written.map(|format| format.name()).collect()
}

fn index_names() -> Vec<&'static str> {
    Format::ALL.iter().map(|format| format.name()).collect()
}

/// The digests that maps can have.
fn map_digest_names() -> Vec<&'static str> {
    let named = Algorithm::ALL.iter().filter(|algorithm| blkmap::Header::accepts(**algorithm));
    named.map(|algorithm| algorithm.name()).collect()
}

fn block_size(text: &str) -> Result<BlockSize, String> {
    let bytes = parse_size(text).map_err(str::to_owned)?;
    BlockSize::try_from(bytes).map_err(|error| error.to_string())
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(str::to_owned)
}

/// Parses a percentage with up to four digits after the point.
fn percent(text: &str) -> Result<Sample, String> {
    let invalid = || "use a percentage from 0 to 100, such as 0.1".to_owned();
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(rest) || rest.len() > 4 {
        return Err(invalid());
    }
    let parts = format!("{whole}{rest:0<4}").parse().ok().filter(|parts| *parts <= 1_000_000);
    parts.map(Sample::parts_per_million).ok_or_else(invalid)
}

const SALT_HELP: &str = "Salt of the digests in hexadecimal, up to 256 bytes; - is none";

const MAX_ZEROS_HELP: &str =
    "Refuse images with more than SIZE of unallocated zeros [default: no limit]";

const CREATE_HELP: &str = "\
A map that was interrupted is continued with --resume from its last checkpoint. Exit status is 0 if the map is \
finished, 2 on an error, 3 if the image changed, or is not the one of the map to continue, 4 if another process writes \
the map.";

const CHECK_HELP: &str = "\
Exit status is 0 if everything is as it was written, 1 if a map is damaged or has another seal, 2 if a file could \
not be read or is not a map.";

const COMPARE_HELP: &str = "\
Exit status is 0 if nothing differs, 1 if something does, 2 if something could not be compared, 3 if an image \
changed meanwhile.";

const UPDATE_HELP: &str = "\
Blocks that are called changed are read, and the others keep their digests. A sample of the others is compared with the \
map. Exit status is 0 if the map now matches the image, 1 if a block of the sample changed, so that the list is not \
complete, 2 on an error, 3 if the bitmap, overlay or older state does not belong to the map, or the image changed meanwhile, 4 if \
another process writes the map. The map is as it was unless the status is 0.";

const AUDIT_HELP: &str = "\
The image is read and compared with the map. Exit status is 0 if every block that differs is in the list, 1 if one is \
not, 2 if something could not be compared, 3 if an image changed meanwhile.";

const IMPORT_HELP: &str = "\
Exit status is 0 if the map is finished, 2 on an error, 4 if another process writes the map.";

const MERGE_HELP: &str = "\
Exit status is 0 if the map is complete, 1 if parts are missing, 2 on an error, 3 if the parts do not belong \
together, 4 if another process writes the map.";
