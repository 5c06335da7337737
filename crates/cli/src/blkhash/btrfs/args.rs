//! The command line of `blkhash btrfs`.

use std::ffi::OsString;

use clap::{Subcommand, ValueHint};

use crate::image::args::Opening;
use crate::progress::ProgressArgs;
use crate::values::{Count, parse_large_size, parse_size};

/// `blkhash btrfs`
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands of `blkhash btrfs`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Verify every checksum of file systems on devices or in images
    #[command(
        override_usage = "blkhash btrfs verify [OPTION]... IMAGE...",
        after_help = VERIFY_HELP
    )]
    Verify(Verify),
    /// Show the checksums of a file system, and what computes them
    #[command(override_usage = "blkhash btrfs info [OPTION]... IMAGE|MOUNTPOINT...")]
    Info(Info),
    /// Compare the checksums that btrfs offers, on this CPU
    #[command(
        override_usage = "blkhash btrfs algorithms [OPTION]...",
        after_help = ALGORITHMS_HELP
    )]
    Algorithms(Algorithms),
    /// Find another name of the same length with the same CRC-32C
    #[command(
        override_usage = "blkhash btrfs obscure-name NAME...",
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

    /// Print only what is wrong
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,

    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub progress: ProgressArgs,
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
}

/// `blkhash btrfs obscure-name`
#[derive(Debug, clap::Args)]
pub struct ObscureName {
    /// Names of 5 to 255 bytes
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<OsString>,
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

    #[command(flatten)]
    pub opening: Opening,
}

/// The largest value of `--max-errors`. Zero means no limit.
const MAX_ERRORS: u64 = 1_000_000_000;

const VERIFY_HELP: &str = "\
Nothing is ever written. Exit status is 0 if everything that a mount could return is what was written, \
as far as anything tells, 1 if errors were found, 2 if something could not be verified.";

const ALGORITHMS_HELP: &str = "\
Which one to choose: crc32c, the default, detects what hardware does to data: bits that flip, blocks \
that get lost. xxhash has 64 bits, so that errors on large and busy file systems do not go unseen by \
chance. Both cost little. sha256 and blake2b cannot be forged, so that two blocks with the same checksum \
are the same: for deduplication that trusts checksums, and for data that may be changed on purpose, \
as far as the checksums themselves are kept safe. sha256 is a standard of NIST (FIPS 180-4). All of them \
show that data changed, none who changed it.

The file system is as fast as the kernel, which computes one block at a time: where the CPU has \
instructions for sha256 and the kernel a driver that uses them, sha256 is faster than blake2b, and \
otherwise blake2b is. The column Kernel and the last line are about that. The driver is the one in \
/proc/crypto that a mount would use. Most kernels load it at the first mount with this checksum, and \
until then it is unknown. The choice is made by mkfs.btrfs --csum, once.";

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
        assert_eq!(verify.images.opening.options().unwrap().follow, Follow::None);
        assert_eq!(verify.names, ["a", "b"]);
    }
}
