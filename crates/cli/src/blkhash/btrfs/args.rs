//! The command line of `blkhash btrfs`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use blkimage::{Cache, Follow, Format, Holes, NbdOptions, OpenOptions};
use clap::{ArgAction, Subcommand, ValueHint};

use crate::progress::{When, when_names};
use crate::values::{
    Count, Named, cache_names, follow_names, format_names, holes_names, parse_large_size,
    parse_seconds, parse_size, read_secret, timeout,
};

/// `blkhash btrfs`
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,

    /// Print this help
    #[arg(short, long, action = ArgAction::HelpShort)]
    help: (),
}

/// The subcommands of `blkhash btrfs`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Verify every checksum of file systems on devices or in images
    #[command(
        override_usage = "blkhash btrfs verify [OPTION]... IMAGE...",
        disable_help_flag = true,
        after_help = VERIFY_HELP
    )]
    Verify(Verify),
    /// Show the checksums of a file system, and what computes them
    #[command(
        override_usage = "blkhash btrfs info [OPTION]... IMAGE|MOUNTPOINT...",
        disable_help_flag = true
    )]
    Info(Info),
    /// Compare the checksums that btrfs offers, on this CPU
    #[command(
        override_usage = "blkhash btrfs algorithms [OPTION]...",
        disable_help_flag = true,
        after_help = ALGORITHMS_HELP
    )]
    Algorithms(Algorithms),
    /// Find another name of the same length with the same CRC-32C
    #[command(
        override_usage = "blkhash btrfs obscure-name NAME...",
        disable_help_flag = true,
        after_help = OBSCURE_HELP
    )]
    ObscureName(ObscureName),
}

/// `blkhash btrfs verify`
#[derive(Debug, clap::Args)]
pub struct Verify {
    /// Images or devices, in any order
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath, required = true)]
    pub names: Vec<OsString>,

    #[command(flatten)]
    pub images: Images,

    /// Number of threads [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = Count::of(1..=1024_u16))]
    pub threads: Option<u16>,

    /// Hash with this implementation only; blkhash algorithms lists them
    #[arg(long, value_name = "NAME")]
    pub implementation: Option<String>,

    /// Name at most N files for each error [default: 16]
    #[arg(long, value_name = "N", value_parser = Count::of(0..=u16::MAX))]
    pub max_files: Option<u16>,

    /// Print at most N errors, and count the rest; 0 prints all [default: 100, and no more than
    /// 64 KiB of them]
    #[arg(long, value_name = "N", value_parser = Count::of(0..=MAX_ERRORS))]
    pub max_errors: Option<u64>,

    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,

    /// Show progress on the terminal: auto, always or never; json writes an object a second
    /// [default: auto, where it takes longer than a second; without a value: always]
    #[arg(
        short, long, value_name = "WHEN",
        num_args = 0..=1, require_equals = true, default_missing_value = "always",
        value_parser = Named::<When>::of(when_names), hide_possible_values = true
    )]
    pub progress: Option<When>,

    /// Print this help
    #[arg(short, long, action = ArgAction::HelpShort)]
    help: (),
}

/// `blkhash btrfs info`
#[derive(Debug, clap::Args)]
pub struct Info {
    /// Images, devices or mount points
    #[arg(value_name = "IMAGE", value_hint = ValueHint::AnyPath, required = true)]
    pub names: Vec<OsString>,

    #[command(flatten)]
    pub images: Images,

    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,

    /// Print this help
    #[arg(short, long, action = ArgAction::HelpShort)]
    help: (),
}

/// `blkhash btrfs algorithms`
#[derive(Debug, clap::Args)]
pub struct Algorithms {
    /// Also show the space that the checksums of SIZE of data take
    #[arg(long, value_name = "SIZE", value_parser = parse_large_size)]
    pub data: Option<u64>,

    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,

    /// Print this help
    #[arg(short, long, action = ArgAction::HelpShort)]
    help: (),
}

/// `blkhash btrfs obscure-name`
#[derive(Debug, clap::Args)]
pub struct ObscureName {
    /// Names of 5 to 255 bytes
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<OsString>,

    /// Print this help
    #[arg(short, long, action = ArgAction::HelpShort)]
    help: (),
}

/// Options for opening images and finding file systems in them.
#[derive(Debug, clap::Args)]
pub struct Images {
    /// Look only at partition N [default: every partition with btrfs]
    #[arg(
        long, value_name = "N", conflicts_with = "offset", value_parser = Count::of(1..=u32::MAX)
    )]
    pub partition: Option<u32>,

    /// Look for the file system at this byte
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub offset: Option<u64>,

    /// Format of the images [default: detected from the content]
    #[arg(
        short, long, value_name = "FORMAT",
        value_parser = Named::<Format>::of(format_names), hide_possible_values = true
    )]
    pub format: Option<Format>,

    /// Read the internal snapshot with this name or id
    #[arg(long, value_name = "NAME")]
    pub snapshot: Option<String>,

    /// Read through the page cache: auto, yes or no [default: auto; without a value: yes]
    #[arg(
        long, value_name = "WHEN",
        num_args = 0..=1, require_equals = true, default_missing_value = "yes",
        value_parser = Named::<Cache>::of(cache_names), hide_possible_values = true
    )]
    pub cache: Option<Cache>,

    /// How to treat holes in raw files: trust, verify or ignore [default: trust]
    #[arg(
        long, value_name = "MODE",
        value_parser = Named::<Holes>::of(holes_names), hide_possible_values = true
    )]
    pub holes: Option<Holes>,

    /// Files that an image may refer to: beneath (its own folder), any or none [default: beneath]
    #[arg(
        long, value_name = "WHICH",
        value_parser = Named::<Follow>::of(follow_names), hide_possible_values = true
    )]
    pub follow: Option<Follow>,

    /// For images from unknown sources: the same as --follow=none
    #[arg(long, conflicts_with = "follow")]
    pub untrusted: bool,

    /// Read images that are in use
    #[arg(short = 'U', long)]
    pub force_share: bool,

    /// Format of backing files whose format is not recorded
    #[arg(
        long, value_name = "FORMAT",
        value_parser = Named::<Format>::of(format_names), hide_possible_values = true
    )]
    pub backing_format: Option<Format>,

    /// Unlock encrypted (luks) images with the content of FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub secret_file: Option<PathBuf>,

    /// Program that reads formats other than raw and qcow2 [default: qemu-nbd]
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::CommandName)]
    pub nbd_server: Option<PathBuf>,

    /// Fail if a server is silent for SECONDS; 0 waits forever [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub timeout: Option<Duration>,

    /// Folder of the certificates for nbds:// URIs [default: that of libnbd]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub tls_certificates: Option<PathBuf>,

    /// Disable the sandbox
    #[arg(long)]
    pub no_sandbox: bool,
}

impl Images {
    /// Returns the options for opening images. The error is what is wrong with the secret.
    pub fn options(&self) -> Result<OpenOptions, String> {
        let secret = self.secret_file.as_deref().map(read_secret).transpose()?;
        let nbd = NbdOptions::new()
            .timeout(timeout(self.timeout))
            .tls_certificates(self.tls_certificates.clone())
            .allow_local_files(true);
        let follow = if self.untrusted { Follow::None } else { self.follow.unwrap_or_default() };
        Ok(OpenOptions::new()
            .format(self.format)
            .snapshot(self.snapshot.clone())
            .follow(follow)
            .backing_format(self.backing_format)
            .holes(self.holes.unwrap_or_default())
            .cache(self.cache.unwrap_or_default())
            .force_share(self.force_share)
            .nbd_server(self.nbd_server.clone())
            .secret(secret)
            .nbd(nbd))
    }
}

/// The largest value of `--max-errors`. Zero means no limit.
const MAX_ERRORS: u64 = 1_000_000_000;

const VERIFY_HELP: &str = "\
Nothing is ever written. Exit status is 0 if everything that a mount could return is what was written, \
as far as anything tells, 1 if errors were found, 2 if something could not be verified.";

const ALGORITHMS_HELP: &str = "\
Which one to choose: crc32c, the default, is the fastest and detects what hardware does to data: bits \
that flip, blocks that get lost. xxhash is as fast and has 64 bits, so that errors on large and busy \
file systems do not go unseen by chance. sha256 and blake2b cannot be forged, so that two blocks with \
the same checksum are the same: for deduplication that trusts checksums, and for data that somebody \
may change on purpose, as far as the checksums themselves are kept safe. sha256 is a standard of NIST \
and fast where the CPU has instructions for it, blake2b is fast without. All of them show that data \
changed, none who changed it. The choice is made by mkfs.btrfs --csum, once.";

const OBSCURE_HELP: &str = "\
Folders of btrfs find names by their CRC-32C, and dumps of file systems replace names by such ones to \
hide them. Each line of output is the other name.";

#[cfg(test)]
mod tests {
    use blkimage::Follow;
    use clap::Parser;

    use super::Command;
    use crate::blkhash::args;

    #[test]
    fn untrusted_images_follow_no_references() {
        let args = ["blkhash", "btrfs", "verify", "--untrusted", "a", "b"];
        let args::Command::Btrfs(args) = args::Args::try_parse_from(args).unwrap().command else {
            panic!("another command");
        };
        let Command::Verify(verify) = args.command else { panic!("another command") };
        assert_eq!(verify.images.options().unwrap().follow, Follow::None);
        assert_eq!(verify.names, ["a", "b"]);
    }
}
