//! The command line of `blkhash`, and its help texts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use blkhash::Algorithm;
use blkimage::names;
use clap::{ArgAction, Parser, Subcommand, ValueHint};

use super::btrfs::args as btrfs;
use super::map::args as map;
use super::range::{Range, parse_offset};
use super::verity::args as verity;
use crate::image::args::Opening;
use crate::progress::ProgressArgs;
use crate::value::digest::digest_names;
use crate::values::{Count, Named, parse_seconds, parse_size};

/// Show and measure the hash implementations of blksum, verify btrfs, find where images differ, and
/// make and verify trees of fs-verity and dm-verity.
#[derive(Debug, Parser)]
#[command(
    name = "blkhash",
    version,
    override_usage = "blkhash COMMAND [OPTION]...",
    disable_help_flag = true,
    disable_version_flag = true,
    infer_long_args = true,
    max_term_width = 100,
    after_help = AFTER_HELP
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,

    /// Print this help
    #[arg(short, long, action = ArgAction::HelpShort)]
    help: (),

    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: (),
}

/// The subcommands of `blkhash`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List digest algorithms, their implementations, and which of them are used
    #[command(override_usage = "blkhash algorithms [OPTION]... [NAME]...")]
    Algorithms(Algorithms),
    /// Measure all implementations, or the speed of digests on an image
    #[command(
        override_usage = "blkhash bench [OPTION]...\n       blkhash bench image [OPTION]... IMAGE",
        disable_help_subcommand = true,
        args_conflicts_with_subcommands = true
    )]
    Bench(Bench),
    /// Show format, size, backing files, snapshots and partitions of images
    #[command(override_usage = "blkhash info [OPTION]... IMAGE...")]
    Info(Box<Info>),
    /// Verify every checksum that images hold of themselves: of their format, partition tables, volumes and file systems
    #[command(override_usage = "blkhash check [OPTION]... IMAGE...", after_help = CHECK_HELP)]
    Check(Box<Check>),
    /// Verify and explain the checksums of btrfs file systems
    #[command(override_usage = "blkhash btrfs COMMAND [OPTION]...")]
    Btrfs(btrfs::Args),
    /// Make maps of the blocks of images, and find where images differ
    #[command(override_usage = "blkhash map COMMAND [OPTION]...", disable_help_flag = true)]
    Map(map::Args),
    /// Show which file or structure of a file system bytes of an image belong to
    #[command(override_usage = "blkhash owners [OPTION]... IMAGE [RANGE]...")]
    Owners(Box<Owners>),
    /// Make and verify trees of fs-verity and dm-verity for any image
    #[command(override_usage = "blkhash verity COMMAND [OPTION]...")]
    Verity(Box<verity::Args>),
}

/// `blkhash algorithms`
#[derive(Debug, clap::Args)]
pub struct Algorithms {
    /// Show all details of these algorithms
    #[arg(
        value_name = "NAME",
        value_parser = Named::<Algorithm>::of(algorithm_names), hide_possible_values = true
    )]
    pub names: Vec<Algorithm>,

    /// Also show the kernel's drivers, from /proc/crypto
    #[arg(long)]
    pub kernel: bool,

    /// Measure the implementations on this CPU, in less than a second
    #[arg(long)]
    pub measure: bool,

    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// `blkhash info`
#[derive(Debug, clap::Args)]
pub struct Info {
    /// Images, devices, URLs or NBD URIs
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath, required = true)]
    pub names: Vec<OsString>,

    #[command(flatten)]
    pub opening: Opening,

    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// `blkhash check`
#[derive(Debug, clap::Args)]
pub struct Check {
    /// Images, devices, URLs or NBD URIs
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath, required = true)]
    pub names: Vec<OsString>,

    /// Only partition N
    #[arg(long, value_name = "N", value_parser = Count::of(1..=u32::MAX))]
    pub partition: Option<u32>,

    /// Number of threads [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = Count::of(1..=1024_u16))]
    pub threads: Option<u16>,

    #[command(flatten)]
    pub opening: Opening,

    /// Print nothing about images that are clean
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,

    /// Print at most N errors, and count the rest; 0 prints all [default: 100, and 1 MiB]
    #[arg(long, value_name = "N", value_parser = Count::of(0..=1_000_000_000_u64))]
    pub max_errors: Option<u64>,

    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub progress: ProgressArgs,
}

/// `blkhash owners`
#[derive(Debug, clap::Args)]
pub struct Owners {
    /// Image, device, URL or NBD URI
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub image: OsString,

    /// Bytes of its content: one, or a range, such as 1G-2G or 1G+64K. Offsets may be hexadecimal (0x1000) or count sectors
    /// of 512 bytes (8s) [default: all]
    #[arg(value_name = "RANGE", value_parser = parse_bytes)]
    pub ranges: Vec<Range>,

    /// Only partition N of the image, in which the offsets are then
    #[arg(long, value_name = "N", value_parser = Count::of(1..=u32::MAX))]
    pub partition: Option<u32>,

    #[command(flatten)]
    pub opening: Opening,

    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// `blkhash bench`
#[derive(Debug, clap::Args)]
pub struct Bench {
    #[command(subcommand)]
    pub what: Option<BenchWhat>,

    /// Measure only implementations or algorithms that match GLOB, ignoring case. Repeatable
    #[arg(long, value_name = "GLOB")]
    pub filter: Vec<String>,

    /// Block size, from 512 to 64M [default: 4K]
    #[arg(long, value_name = "SIZE", value_parser = parse_block_size)]
    pub block_size: Option<usize>,

    /// Number of blocks hashed in one call [default: 16, fewer if they are large]
    #[arg(long, value_name = "N", value_parser = Count::of(1..=1024_u16))]
    pub batch: Option<u16>,

    /// Numbers of threads to measure, or all; a list with commas [default: 1]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub threads: Vec<Threads>,

    /// Also measure blocks from memory, in addition to those in the cache
    #[arg(long)]
    pub cold: bool,

    /// Seconds for each row [default: 0.08]
    #[arg(long, value_name = "SECONDS", value_parser = parse_time, conflicts_with = "iterations")]
    pub time: Option<Duration>,

    /// Number of blocks for each row [default with --format hash-speedtest: 100000]
    #[arg(long, value_name = "N", value_parser = Count::of(1..=MAX_ITERATIONS))]
    pub iterations: Option<u64>,

    /// Output format: docs (the table in the documentation of btrfs), hash-speedtest (the lines of
    /// btrfs-progs), csv or json [default: docs]
    #[arg(
        long, value_name = "LAYOUT",
        value_parser = Named::<Layout>::of(Layout::names), hide_possible_values = true
    )]
    pub format: Option<Layout>,

    /// Same as --format json: one object per line
    #[arg(long, conflicts_with_all = ["format", "csv"])]
    pub json: bool,

    /// Same as --format csv
    #[arg(long, conflicts_with = "format")]
    pub csv: bool,

    /// Also write a bar chart to FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,

    /// Also measure sha256sum, sha1sum, md5sum, b2sum, b3sum, cksum, xxhsum and openssl, as far as
    /// they are installed, beside blksum, and compare their values
    #[arg(long, conflicts_with = "csv")]
    pub tools: bool,

    /// Measure which errors the checksums detect, instead of their speed
    #[arg(
        long,
        conflicts_with_all = [
            "block_size", "batch", "threads", "cold", "time", "iterations", "csv", "svg", "format",
            "tools"
        ]
    )]
    pub quality: bool,
}

/// The subcommands of `blkhash bench`.
#[derive(Debug, Subcommand)]
pub enum BenchWhat {
    /// Measure the storage of an image and digests on it, and show which of them is the limit
    #[command(override_usage = "blkhash bench image [OPTION]... IMAGE")]
    Image(BenchImage),
}

/// `blkhash bench image`
#[derive(Debug, clap::Args)]
pub struct BenchImage {
    /// Image, of which the beginning is read several times
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub image: PathBuf,

    /// Digest algorithm to measure. Repeatable
    /// [default: crc32c, xxh3, blake3, blake2b256, sha256 and sha512]
    #[arg(
        short, long = "digest", value_name = "NAME",
        value_parser = Named::<Algorithm>::of(digest_names), hide_possible_values = true
    )]
    digests: Vec<Algorithm>,

    /// Numbers of threads to measure, or all; a list with commas [default: 1,all]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub threads: Vec<Threads>,

    /// Seconds of reading for each measurement [default: 0.5]
    #[arg(
        long, value_name = "SECONDS", value_parser = parse_time, default_value = "0.5",
        hide_default_value = true
    )]
    pub time: Duration,

    #[command(flatten)]
    pub opening: Opening,

    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,
}

impl BenchImage {
    /// Returns the digests to measure: the null digest, then the requested ones or the defaults.
    pub fn digests(&self) -> Vec<Algorithm> {
        let wanted = if self.digests.is_empty() { DEFAULT_DIGESTS } else { &self.digests };
        let mut digests = vec![Algorithm::Null];
        for digest in wanted {
            if !digests.contains(digest) {
                digests.push(*digest);
            }
        }
        digests
    }
}

impl Bench {
    /// Returns the layout of the output.
    pub fn layout(&self) -> Layout {
        match (self.json, self.csv) {
            (true, _) => Layout::Json,
            (_, true) => Layout::Csv,
            _ => self.format.unwrap_or_default(),
        }
    }
}

/// The layout of measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// The table of the btrfs documentation.
    #[default]
    Docs,
    /// The lines of hash-speedtest from btrfs-progs.
    Speedtest,
    Csv,
    Json,
}

names!(Layout { Docs = "docs", Speedtest = "hash-speedtest", Csv = "csv", Json = "json" });

/// A number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads(pub usize);

impl FromStr for Threads {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "all" {
            return Ok(Self(blksys::processors()));
        }
        match text.parse() {
            Ok(threads @ 1..=1024) => Ok(Self(threads)),
            _ => Err("use a number from 1 to 1024, or all"),
        }
    }
}

/// Parses the offset of a byte, or a range.
fn parse_bytes(text: &str) -> Result<Range, String> {
    match parse_offset(text) {
        Ok(from) => Ok(Range { from, to: Some(from.saturating_add(1)) }),
        Err(_) => text.parse().map_err(|_| {
            "use OFFSET, FROM-TO or FROM+LENGTH, such as 4096, 0x1000, 8s (sectors), 1G-2G or 1G+64K".to_owned()
        }),
    }
}

fn parse_block_size(text: &str) -> Result<usize, &'static str> {
    match parse_size(text).map_err(|_| BLOCK_SIZE_SYNTAX)? {
        size @ 512..=MAX_BLOCK_SIZE => Ok(size as usize),
        _ => Err(BLOCK_SIZE_SYNTAX),
    }
}

fn parse_time(text: &str) -> Result<Duration, &'static str> {
    match parse_seconds(text) {
        Ok(time) if (MIN_TIME..=MAX_TIME).contains(&time) => Ok(time),
        _ => Err("use seconds from 0.001 to 3600"),
    }
}

fn algorithm_names() -> Vec<&'static str> {
    Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect()
}

/// Common choices, the fastest first.
const CHECK_HELP: &str = "\
Exit status is 0 if everything that has a checksum matches it, 1 if something does not or violates the rules of its layer, \
2 if something could not be read or verified, 3 if an image changed while it was read.";

const DEFAULT_DIGESTS: &[Algorithm] = &[
    Algorithm::Crc32c,
    Algorithm::Xxh3,
    Algorithm::Blake3,
    Algorithm::Blake2b256,
    Algorithm::Sha256,
    Algorithm::Sha512,
];

const MAX_BLOCK_SIZE: u64 = 64 << 20;

/// Limit of `--iterations`. More would take days.
const MAX_ITERATIONS: u64 = 1_000_000_000_000;

const BLOCK_SIZE_SYNTAX: &str = "use a size from 512 to 64M, such as 64K";

const MIN_TIME: Duration = Duration::from_millis(1);
/// The longest `--time`.
pub const MAX_TIME: Duration = Duration::from_secs(3600);

const AFTER_HELP: &str = "\
'blkhash help COMMAND' and 'blkhash COMMAND --help' list the options of a command. Sizes are numbers \
of bytes and may end in K, M or G.

The variables BLKHASH_IMPLEMENTATION (implementations to use instead of the best ones) and \
BLKHASH_CPU_DISABLE (CPU features not to use: sha, avx2, avx512, sha-avx512, on ARM sha2, sha512) \
are lists with commas.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parser_is_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn values() {
        assert_eq!(parse_block_size("4k"), Ok(4096));
        assert!(parse_block_size("511").is_err() && parse_block_size("65M").is_err());
        assert_eq!(parse_time("0.5"), Ok(Duration::from_millis(500)));
        assert!(["0", "-1", "inf", "nan", "x"].iter().all(|text| parse_time(text).is_err()));
        assert_eq!("3".parse(), Ok(Threads(3)));
        assert!("0".parse::<Threads>().is_err());
    }
}
