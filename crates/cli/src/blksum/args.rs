//! The command line, as it is written and as it is documented.

use std::ffi::OsString;
use std::path::PathBuf;

use blkhash::{BlockSize, Construction, Salt};
use blkimage::names;

use clap::{ArgAction, Parser, ValueHint};

use crate::image::args::{IMAGES, Opening, SPEED};
use crate::image::filter::{Glob, parse_glob};
use crate::progress::When;
use crate::value::digest::{DigestName, digest_names};
use crate::values::{Count, Named, parse_block_size, parse_large_size, parse_size};

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "blksum",
    version,
    about = ABOUT,
    override_usage = "blksum [OPTION]... [IMAGE]...",
    help_template = "{usage-heading} {usage}\n{about-section}\n{all-args}{after-help}",
    disable_help_flag = true,
    disable_version_flag = true,
    infer_long_args = true,
    args_override_self = true,
    max_term_width = 100,
    mut_arg("max-zeros", |size| size.help(MAX_ZEROS_HELP)),
    after_help = AFTER_HELP
)]
pub struct Args {
    /// Images; with --check files of checksums; - is standard input
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath, hide = true)]
    pub names: Vec<OsString>,

    /// Write lines that state how the checksum was made: TAG (IMAGE) = CHECKSUM
    #[arg(help_heading = OUTPUT, long)]
    pub tag: bool,

    /// Write lines in this form: plain, tag (the same as --tag) or oci (ALGORITHM:HEX  IMAGE)
    #[arg(
        help_heading = OUTPUT, long, value_name = "FORM", conflicts_with_all = ["tag", "json", "check"],
        value_parser = Named::<LineForm>::of(LineForm::names), hide_possible_values = true, hide_short_help = true
    )]
    pub style: Option<LineForm>,

    /// Write checksums in base64, as clouds do
    #[arg(help_heading = OUTPUT, long, conflicts_with_all = ["json", "check"], hide_short_help = true)]
    pub base64: bool,

    /// Write one JSON object per line
    #[arg(help_heading = OUTPUT, long)]
    pub json: bool,

    /// Print no notes; with --check, no OK for matches
    #[arg(help_heading = OUTPUT, short, long, overrides_with_all = ["status", "warn"])]
    pub quiet: bool,

    /// Describe each image and how it is read and hashed. This states the format, backing chain, sizes and
    /// sandbox
    #[arg(help_heading = OUTPUT, short, long)]
    pub verbose: bool,

    /// Show progress on the terminal: auto, always or never; json writes an object a second.
    /// The default is auto, where it takes longer than a second, and without a value always
    #[arg(
        help_heading = OUTPUT, short, long, value_name = "WHEN",
        num_args = 0..=1, require_equals = true, default_missing_value = "always",
        value_parser = Named::<When>::of(When::names), hide_possible_values = true
    )]
    pub progress: Option<When>,

    /// Also write the block map of each image: to FILE, or for several images to DIR/IMAGE.blkmap. This is
    /// the same pass. blkhash map compares maps
    #[arg(
        help_heading = OUTPUT, long, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath,
        conflicts_with_all = ["offset", "length"]
    )]
    pub map: Option<PathBuf>,

    /// End lines with NUL instead of newline, and do not escape names
    #[arg(help_heading = OUTPUT, short, long, hide_short_help = true)]
    pub zero: bool,

    /// Mark names with an asterisk, like sha256sum --binary
    #[arg(help_heading = OUTPUT, short, long, overrides_with = "text", hide_short_help = true)]
    pub binary: bool,

    /// Do not mark names (default)
    #[arg(help_heading = OUTPUT, short, long, hide_short_help = true)]
    pub text: bool,

    /// Read checksums from the files and check them. An appliance (.ova) has them in its manifest,
    /// an OCI image in its index
    #[arg(help_heading = CHECK, short, long)]
    pub check: bool,

    /// Check a checksum from elsewhere, however it was made
    ///
    /// VALUE is hexadecimal, base64, ALGORITHM:HEX, a line of a check file, or BASE64-N of an object in S3 with N parts. The word
    /// stored asks the server of a URL for the checksum that it stores with the object: of S3, or of stores that have it in headers.
    /// Repeatable; for one of several images IMAGE=VALUE.
    #[arg(
        help_heading = CHECK, long, value_name = "VALUE", allow_hyphen_values = true,
        conflicts_with_all = [
            "check", "tag", "style", "base64", "map", "zero", "binary", "text", "recursive", "files0_from",
        ]
    )]
    pub expect: Vec<OsString>,

    /// Check that each image has a checksum that stands in FILE, a log of virt-v2v or nbdcopy; - is
    /// standard input
    #[arg(
        help_heading = CHECK, long, value_name = "FILE", value_hint = ValueHint::FilePath,
        conflicts_with_all = [
            "expect", "check", "tag", "style", "base64", "map", "zero", "binary", "text", "recursive",
        ],
        hide_short_help = true
    )]
    pub expect_log: Option<PathBuf>,

    /// Take lines without a tag only as the options say; otherwise other constructions and digests are
    /// tried
    #[arg(help_heading = CHECK, long, hide_short_help = true)]
    pub strict_construction: bool,

    /// Do not fail or report status for missing images
    #[arg(help_heading = CHECK, long, hide_short_help = true)]
    pub ignore_missing: bool,

    /// Print nothing; the exit status shows success
    #[arg(help_heading = CHECK, long, overrides_with_all = ["quiet", "warn"], hide_short_help = true)]
    pub status: bool,

    /// Fail on improperly formatted lines
    #[arg(help_heading = CHECK, long, hide_short_help = true)]
    pub strict: bool,

    /// Warn about each improperly formatted line
    #[arg(help_heading = CHECK, short, long, overrides_with_all = ["quiet", "status"], hide_short_help = true)]
    pub warn: bool,

    /// Allow URIs as names in check files
    #[arg(help_heading = CHECK, long, hide_short_help = true)]
    pub allow_uri: bool,

    /// Digest algorithm [default: sha256]. If repeated, each image is read once for all of them.
    /// NAME:HOW gives one its own construction, NAME:bytes hashes the bytes of the file, beside the
    /// checksum of its content
    #[arg(
        help_heading = CHECKSUM, short, long, value_name = "NAME",
        visible_short_alias = 'a', visible_alias = "algorithm",
        value_parser = Named::<DigestName>::of(digest_names), hide_possible_values = true
    )]
    pub digest: Vec<DigestName>,

    /// Construction of the checksum: streams[:N], flat, concat, linear, fs-verity or dm-verity
    /// [default: streams:4]
    #[arg(
        help_heading = CHECKSUM, long, value_name = "HOW",
        value_parser = Named::<Construction>::of(construction_names), hide_possible_values = true, hide_short_help = true
    )]
    pub construction: Option<Construction>,

    /// Size of the blocks, a power of two from 512 to 64M [default: 64K, with fs-verity and dm-verity
    /// 4K]
    #[arg(help_heading = CHECKSUM, long, value_name = "SIZE", value_parser = parse_block_size, hide_short_help = true)]
    pub block_size: Option<BlockSize>,

    /// Salt of fs-verity (up to 32 bytes) and dm-verity (up to 256 bytes), in hexadecimal
    #[arg(help_heading = CHECKSUM, long, value_name = "HEX", hide_short_help = true)]
    pub salt: Option<Salt>,

    /// Hash the bytes of the file itself, as sha256sum does: the same as --format raw
    /// --construction linear. With --check, untagged lines are such digests
    #[arg(
        help_heading = CHECKSUM, short = 'B', long,
        conflicts_with_all = [
            "block_size", "salt", "snapshot", "partition", "offset", "length",
        ]
    )]
    pub bytes: bool,

    /// List the digest algorithms
    #[arg(help_heading = CHECKSUM, short, long)]
    pub list_digests: bool,

    #[command(flatten)]
    pub opening: Opening,

    /// Hash only partition N (GPT or MBR)
    #[arg(
        help_heading = IMAGES, long, value_name = "N", conflicts_with_all = ["offset", "length"],
        value_parser = Count::of(1..=u32::MAX)
    )]
    pub partition: Option<u32>,

    /// Hash the content from this byte on
    #[arg(help_heading = IMAGES, long, value_name = "BYTES", value_parser = parse_large_size, hide_short_help = true)]
    pub offset: Option<u64>,

    /// Hash this many bytes [default: up to the end]
    #[arg(help_heading = IMAGES, long, value_name = "BYTES", value_parser = parse_large_size, hide_short_help = true)]
    pub length: Option<u64>,

    /// Hash regular files in folders, ordered by name
    #[arg(help_heading = IMAGES, short, long)]
    pub recursive: bool,

    /// With --recursive, hash only files that match GLOB: by name, or by path beneath the
    /// folder if GLOB has a slash.
    /// Repeatable
    #[arg(help_heading = IMAGES, long, value_name = "GLOB", value_parser = parse_glob, hide_short_help = true)]
    pub include: Vec<Glob>,

    /// With --recursive, leave out files and folders that match GLOB. Repeatable
    #[arg(help_heading = IMAGES, long, value_name = "GLOB", value_parser = parse_glob, hide_short_help = true)]
    pub exclude: Vec<Glob>,

    /// Read the names of images from FILE, each terminated by NUL; - is standard input
    #[arg(help_heading = IMAGES, long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub files0_from: Vec<PathBuf>,

    /// Number of threads [default: one for each processor]
    #[arg(
        help_heading = SPEED, long, value_name = "N",
        value_parser = Count::of(1..=1024u16)
    )]
    pub threads: Option<u16>,

    /// Number of reads that may be ahead of the first unfinished one
    #[arg(
        help_heading = SPEED, long, value_name = "N",
        value_parser = Count::of(1..=u16::MAX), hide_short_help = true
    )]
    pub queue_depth: Option<u16>,

    /// Size of one read
    #[arg(help_heading = SPEED, long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    pub read_size: Option<u64>,

    /// Hash with this implementation only; blkhash algorithms lists them
    #[arg(help_heading = SPEED, long, value_name = "NAME", hide_short_help = true)]
    pub implementation: Option<String>,

    /// Print this help
    #[arg(help_heading = OTHER, short, long, action = ArgAction::HelpShort)]
    help: (),

    /// Print the version
    #[arg(help_heading = OTHER, short = 'V', long, action = ArgAction::Version)]
    version: (),
}

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineForm {
    Plain,
    Tag,
    Oci,
}

names!(LineForm, "form", { Plain = "plain", Tag = "tag", Oci = "oci" });

fn construction_names() -> Vec<&'static str> {
    vec![
        "streams:4",
        "streams:32",
        "streams:64",
        "flat",
        "concat",
        "linear",
        "fs-verity",
        "dm-verity",
    ]
}

const OUTPUT: &str = "Output";
const CHECK: &str = "Check";
const CHECKSUM: &str = "Checksum";
const OTHER: &str = "Other";

const ABOUT: &str = "\
Print or check checksums of disk images.

The checksum covers the content that a guest sees, and does not depend on the format of the \
image. With no IMAGE, or when IMAGE is -, read standard input.";

const MAX_ZEROS_HELP: &str = "Refuse images with more than SIZE of zeros that are not stored [default: 2^32 blocks, 256T with the \
     default block size; 4T with linear; 1T for formats that hide what is stored]";

const AFTER_HELP: &str = "\
Examples:
  blksum --tag *.qcow2 > SUMS    write checksums
  blksum -c SUMS                 check them, in any format
  blksum -B -c SHA256SUMS        check files that a distribution publishes
  blksum -c vm.ova               check the manifest in an appliance

Sizes are in bytes and may end in K, M or G, where images are meant also in T.

Exit status is 0 on success, 1 if an image could not be read or did not match, 2 if the command line \
is wrong. The manual page blksum(1) has more.";

#[cfg(test)]
mod tests {
    use blkhash::Algorithm;
    use blkimage::Cache;

    use super::*;

    #[test]
    fn the_parser_is_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn optional_values_do_not_eat_names() {
        let parse = |args: &[&str]| {
            let args = Args::try_parse_from([&["blksum"], args].concat()).unwrap();
            (args.opening.open.cache, args.progress, args.names)
        };
        let name = || vec![OsString::from("no")];
        assert_eq!(parse(&["--cache", "no"]), (Cache::Yes, None, name()));
        assert_eq!(parse(&["--cache=no", "no"]), (Cache::No, None, name()));
        assert_eq!(parse(&["-p", "no"]), (Cache::Auto, Some(When::Always), name()));
        assert_eq!(parse(&["--progress", "no"]), (Cache::Auto, Some(When::Always), name()));
        assert_eq!(parse(&["-zpb", "no"]), (Cache::Auto, Some(When::Always), name()));
        assert_eq!(parse(&["-p=never", "no"]), (Cache::Auto, Some(When::Never), name()));
    }

    #[test]
    fn digests_may_be_repeated_and_abbreviated() {
        let args = ["blksum", "--digest", "md5", "-a", "SHA3_256", "--algorithm=blake3", "--rec"];
        let args = Args::try_parse_from(args).unwrap();
        let algorithms: Vec<_> = args.digest.iter().map(|name| name.algorithm).collect();
        assert_eq!(algorithms, [Algorithm::Md5, Algorithm::Sha3_256, Algorithm::Blake3]);
        assert!(args.recursive);
    }
}
