//! The command line, as it is written and as it is documented.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use blkhash::{Algorithm, Construction};
use blkimage::{Cache, Follow, Format, Holes};
use clap::{ArgAction, Parser, ValueHint};

use super::digest::DigestName;
use super::filter::{Glob, parse_glob};
use crate::progress::{When, when_names};
use crate::values::{
    Count, Named, cache_names, follow_names, format_names, holes_names, parse_large_size,
    parse_seconds, parse_size,
};

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
    after_help = AFTER_HELP
)]
pub struct Args {
    /// Images; with --check files of checksums; - is standard input
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath, hide = true)]
    pub names: Vec<OsString>,

    /// Use the digest algorithm NAME [default: sha256]. Given more than once, each image is read
    /// once for all of them; NAME:HOW has a construction of its own
    #[arg(
        help_heading = WHAT, short, long, value_name = "NAME",
        visible_short_alias = 'a', visible_alias = "algorithm",
        value_parser = Named::<DigestName>::of(digest_names), hide_possible_values = true
    )]
    pub digest: Vec<DigestName>,

    /// Make the checksum as HOW says: streams[:N], flat, concat or linear [default: streams:4]
    #[arg(
        help_heading = WHAT, long, value_name = "HOW",
        value_parser = Named::<Construction>::of(construction_names), hide_possible_values = true
    )]
    pub construction: Option<Construction>,

    /// Hash blocks of SIZE, a power of two from 512 to 64M [default: 64K]
    #[arg(help_heading = WHAT, long, value_name = "SIZE", value_parser = parse_size)]
    pub block_size: Option<u64>,

    /// Read images as FORMAT, as QEMU names it, whatever they look like
    #[arg(
        help_heading = WHAT, short, long, value_name = "FORMAT",
        value_parser = Named::<Format>::of(format_names), hide_possible_values = true
    )]
    pub format: Option<Format>,

    /// Hash the bytes of the file itself, as sha256sum does; with --check take untagged lines for such
    /// digests. The same as --format raw --construction linear
    #[arg(
        help_heading = WHAT, short = 'B', long,
        conflicts_with_all = ["format", "construction", "block_size", "snapshot"]
    )]
    pub bytes: bool,

    /// Unlock encrypted images with the content of FILE, all of it
    #[arg(help_heading = WHAT, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub secret_file: Option<PathBuf>,

    /// Read the internal snapshot that has this name or id, at the size it had when it was taken
    #[arg(help_heading = WHAT, long, value_name = "NAME")]
    pub snapshot: Option<String>,

    /// Hash partition N of each image alone (GPT, MBR)
    #[arg(
        help_heading = WHAT, long, value_name = "N", conflicts_with_all = ["offset", "length"],
        value_parser = Count::of(1..=u32::MAX)
    )]
    pub partition: Option<u32>,

    /// Hash each image from this byte of its content on
    #[arg(help_heading = WHAT, long, value_name = "BYTES", value_parser = parse_large_size)]
    pub offset: Option<u64>,

    /// Hash as many bytes of each image [default: up to its end]
    #[arg(help_heading = WHAT, long, value_name = "BYTES", value_parser = parse_large_size)]
    pub length: Option<u64>,

    /// Hash the regular files in folders, in the order of their names
    #[arg(help_heading = WHAT, short, long)]
    pub recursive: bool,

    /// With --recursive hash only files that match GLOB: their names, or their paths if GLOB has a
    /// slash. Repeatable
    #[arg(help_heading = WHAT, long, value_name = "GLOB", value_parser = parse_glob)]
    pub include: Vec<Glob>,

    /// With --recursive leave out files and folders that match GLOB. Repeatable
    #[arg(help_heading = WHAT, long, value_name = "GLOB", value_parser = parse_glob)]
    pub exclude: Vec<Glob>,

    /// Read the names of images from FILE, each ended by NUL; - is standard input
    #[arg(help_heading = WHAT, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files0_from: Option<PathBuf>,

    /// List the names of the digest algorithms
    #[arg(help_heading = WHAT, short, long)]
    pub list_digests: bool,

    /// Work on N threads [default: one for each processor]
    #[arg(
        help_heading = HOW, long, value_name = "N",
        value_parser = Count::of(1..=1024u16)
    )]
    pub threads: Option<u16>,

    /// Read through the page cache: auto, yes or no [default: auto; without a value: yes]
    #[arg(
        help_heading = HOW, long, value_name = "WHEN",
        num_args = 0..=1, require_equals = true, default_missing_value = "yes",
        value_parser = Named::<Cache>::of(cache_names), hide_possible_values = true
    )]
    pub cache: Option<Cache>,

    /// What to make of holes in raw files: trust, verify or ignore [default: trust]
    #[arg(
        help_heading = HOW, long, value_name = "MODE",
        value_parser = Named::<Holes>::of(holes_names), hide_possible_values = true
    )]
    pub holes: Option<Holes>,

    /// Run PROGRAM for formats other than raw and qcow2 [default: qemu-nbd]
    #[arg(
        help_heading = HOW, long, value_name = "PROGRAM", value_hint = ValueHint::CommandName
    )]
    pub nbd_server: Option<PathBuf>,

    /// Let N reads be ahead of the first that is not done
    #[arg(
        help_heading = HOW, long, value_name = "N",
        value_parser = Count::of(1..=u16::MAX)
    )]
    pub queue_depth: Option<u16>,

    /// Hash with the implementation NAME alone, as blkhash algorithms names it
    #[arg(help_heading = HOW, long, value_name = "NAME")]
    pub implementation: Option<String>,

    /// Read SIZE bytes at a time
    #[arg(help_heading = HOW, long, value_name = "SIZE", value_parser = parse_size)]
    pub read_size: Option<u64>,

    /// Give up on a server that says nothing for SECONDS; 0 waits for ever [default: 60]
    #[arg(help_heading = HOW, long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub timeout: Option<Duration>,

    /// Refuse images with more than SIZE of zeros that they do not store [default: 2^32 blocks, 256T with
    /// the default block size; 4T with linear; 1T where the format hides what is stored]
    #[arg(help_heading = SAFETY, long, value_name = "SIZE", value_parser = parse_large_size)]
    pub max_zeros: Option<u64>,

    /// Which files an image may name: beneath (its own folder), any or none [default: beneath]
    #[arg(
        help_heading = SAFETY, long, value_name = "WHICH",
        value_parser = Named::<Follow>::of(follow_names), hide_possible_values = true
    )]
    pub follow: Option<Follow>,

    /// Do not trust images: the same as --follow=none
    #[arg(help_heading = SAFETY, long, conflicts_with = "follow")]
    pub untrusted: bool,

    /// The folder of the certificates for nbds URIs [default: that of libnbd]
    #[arg(help_heading = SAFETY, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub tls_certificates: Option<PathBuf>,

    /// Read images although they are in use
    #[arg(help_heading = SAFETY, short = 'U', long)]
    pub force_share: bool,

    /// Read backing files whose format is not recorded as FORMAT
    #[arg(
        help_heading = SAFETY, long, value_name = "FORMAT",
        value_parser = Named::<Format>::of(format_names), hide_possible_values = true
    )]
    pub backing_format: Option<Format>,

    /// Do without the sandbox, on systems where it is in the way
    #[arg(help_heading = SAFETY, long)]
    pub no_sandbox: bool,

    /// Write lines that say what the checksum is: TAG (IMAGE) = CHECKSUM
    #[arg(help_heading = OUTPUT, long)]
    pub tag: bool,

    /// End lines with NUL, not newline, and do not escape names
    #[arg(help_heading = OUTPUT, short, long)]
    pub zero: bool,

    /// Write a JSON object a line
    #[arg(help_heading = OUTPUT, long)]
    pub json: bool,

    /// Show progress on the terminal: auto, always or never [default: auto, where it takes longer
    /// than a second; without a value: always]
    #[arg(
        help_heading = OUTPUT, short, long, value_name = "WHEN",
        num_args = 0..=1, require_equals = true, default_missing_value = "always",
        value_parser = Named::<When>::of(when_names), hide_possible_values = true
    )]
    pub progress: Option<When>,

    /// Describe each image (format, backing chain, sizes), how it is read and hashed, and the sandbox
    #[arg(help_heading = OUTPUT, short, long)]
    pub verbose: bool,

    /// Print no notes; with --check no OK for each image that matches
    #[arg(help_heading = OUTPUT, short, long, overrides_with_all = ["status", "warn"])]
    pub quiet: bool,

    /// Mark names with an asterisk, as sha256sum does for files that were read in binary mode
    #[arg(help_heading = OUTPUT, short, long, overrides_with = "text")]
    pub binary: bool,

    /// Do not mark names (the default)
    #[arg(help_heading = OUTPUT, short, long)]
    pub text: bool,

    /// Read checksums from the files and check them
    #[arg(help_heading = CHECK, short, long)]
    pub check: bool,

    /// Neither fail for nor report missing images
    #[arg(help_heading = CHECK, long)]
    pub ignore_missing: bool,

    /// Print nothing, the exit status tells
    #[arg(help_heading = CHECK, long, overrides_with_all = ["quiet", "warn"])]
    pub status: bool,

    /// Fail for improperly formatted lines
    #[arg(help_heading = CHECK, long)]
    pub strict: bool,

    /// Warn about each improperly formatted line
    #[arg(help_heading = CHECK, short, long, overrides_with_all = ["quiet", "status"])]
    pub warn: bool,

    /// Allow URIs as names
    #[arg(help_heading = CHECK, long)]
    pub allow_uri: bool,

    /// Print this help
    #[arg(help_heading = OTHER, short, long, action = ArgAction::HelpShort)]
    help: (),

    /// Print the version
    #[arg(help_heading = OTHER, short = 'V', long, action = ArgAction::Version)]
    version: (),
}

/// The digests that checksums can be made of.
pub fn digest_names() -> Vec<&'static str> {
    let usable = Algorithm::ALL.iter().filter(|algorithm| **algorithm != Algorithm::SipHash);
    usable.map(|algorithm| algorithm.name()).collect()
}

fn construction_names() -> Vec<&'static str> {
    vec!["streams:4", "streams:32", "streams:64", "flat", "concat", "linear"]
}

const WHAT: &str = "What";
const HOW: &str = "How";
const SAFETY: &str = "Safety";
const OUTPUT: &str = "Output";
const CHECK: &str = "Check";
const OTHER: &str = "Other";

const ABOUT: &str = "\
Print or check checksums of disk images.

The checksum is that of what a guest sees: the same whatever the format that stores it. With no \
IMAGE, or when IMAGE is -, read standard input.";

const AFTER_HELP: &str = "\
Sizes are numbers of bytes and may end in K, M or G.

Exit status is 0 if all is well, 1 if an image could not be read or did not match, 2 if the command \
line is wrong.";

#[cfg(test)]
mod tests {
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
            (args.cache, args.progress, args.names)
        };
        let name = || vec![OsString::from("no")];
        assert_eq!(parse(&["--cache", "no"]), (Some(Cache::Yes), None, name()));
        assert_eq!(parse(&["--cache=no", "no"]), (Some(Cache::No), None, name()));
        assert_eq!(parse(&["-p", "no"]), (None, Some(When::Always), name()));
        assert_eq!(parse(&["--progress", "no"]), (None, Some(When::Always), name()));
        assert_eq!(parse(&["-zpb", "no"]), (None, Some(When::Always), name()));
        assert_eq!(parse(&["-p=never", "no"]), (None, Some(When::Never), name()));
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
