//! The command line of `blkcopy`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use blkcopy::{Verify, Zeros};
use blkhash::{Algorithm, BlockSize, Construction};
use blkimage::names;
use blksum::changes::Form;
use clap::{ArgAction, Parser, ValueHint};

use crate::image::args::{IMAGES, Opening, SPEED};
use crate::map::change_list::form_help;
use crate::progress::When;
use crate::value::digest::digest_names;
use crate::values::{Count, Named, parse_block_size, parse_seconds};

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "blkcopy",
    version,
    about = ABOUT,
    override_usage = "blkcopy [OPTION]... SOURCE DESTINATION",
    help_template = "{usage-heading} {usage}\n{about-section}\n{all-args}{after-help}",
    disable_help_flag = true,
    disable_version_flag = true,
    infer_long_args = true,
    args_override_self = true,
    max_term_width = 100,
    after_help = AFTER_HELP
)]
pub struct Args {
    /// Image in any format, device, URL, NBD URI, or - for standard input
    #[arg(value_name = "SOURCE", value_hint = ValueHint::FilePath, hide = true)]
    pub source: OsString,

    /// File, block device, NBD URI, or - for standard output
    #[arg(value_name = "DESTINATION", value_hint = ValueHint::FilePath, hide = true)]
    pub destination: OsString,

    /// Overwrite a file that exists, or a device or export that holds something
    #[arg(help_heading = COPY, long)]
    pub force: bool,

    /// Read the destination, and write only what differs
    #[arg(help_heading = COPY, long)]
    pub update: bool,

    /// Believe that the destination has the content of this block map, and write only the blocks that differ from it
    #[arg(
        help_heading = COPY, long, value_name = "MAP", value_hint = ValueHint::FilePath,
        conflicts_with_all = ["update", "resume", "map"]
    )]
    pub destination_map: Option<PathBuf>,

    /// Copy only what the bitmap NAME of a qcow2 image or of an NBD server says
    #[arg(
        help_heading = COPY, long, value_name = "NAME",
        conflicts_with_all = ["changes", "destination_map", "resume", "map"]
    )]
    pub bitmap: Option<String>,

    /// Copy only the extents of the list in FILE; - is standard input
    #[arg(
        help_heading = COPY, long, value_name = "FILE", value_hint = ValueHint::FilePath,
        conflicts_with_all = ["destination_map", "resume", "map"]
    )]
    pub changes: Option<OsString>,

    #[arg(
        help_heading = COPY, long, value_name = "FORM", requires = "changes", hide_short_help = true,
        help = form_help(), value_parser = Named::<Form>::of(Form::names), hide_possible_values = true
    )]
    pub changes_format: Option<Form>,

    /// Continue an interrupted copy after the last checkpoint in the map of --map
    #[arg(help_heading = COPY, long, requires = "map", conflicts_with = "update")]
    pub resume: bool,

    /// Write only what differs from this block map to standard output, as a delta that --apply reads
    #[arg(
        help_heading = COPY, long, value_name = "MAP", value_hint = ValueHint::FilePath,
        conflicts_with_all = [
            "update", "resume", "map", "zeros", "reflink", "force", "destination_map", "bitmap", "changes"
        ]
    )]
    pub delta_from: Option<PathBuf>,

    /// Apply a delta, which SOURCE is, to a destination that has the content of its map
    #[arg(
        help_heading = COPY, long,
        conflicts_with_all = [
            "delta_from", "update", "resume", "map", "partition", "destination_map", "bitmap", "changes"
        ]
    )]
    pub apply: bool,

    /// What zeros become: auto, write, punch (they are deallocated) or keep-if-zero (what is zero is left alone)
    /// [default: auto]
    #[arg(
        help_heading = COPY, long, value_name = "HOW",
        value_parser = Named::<Zeros>::of(Zeros::names), hide_possible_values = true
    )]
    pub zeros: Option<Zeros>,

    /// Whether a raw image shares its storage with the copy where the file system can do that (btrfs, XFS): auto or never.
    /// Then the copy is read once [default: auto]
    #[arg(
        help_heading = COPY, long, value_name = "WHEN",
        value_parser = Named::<Reflink>::of(Reflink::names), hide_possible_values = true
    )]
    pub reflink: Option<Reflink>,

    /// What is compared with the source: readback (the destination, read again), source (nothing: the checksum
    /// is the checksum of the content that was read) or none (no checksum) [default: readback, for standard output source]
    #[arg(
        help_heading = COPY, long, value_name = "WHAT",
        value_parser = Named::<Verification>::of(Verification::names), hide_possible_values = true
    )]
    pub verify: Option<Verification>,

    /// Fail unless the content has this checksum: HEX, BASE64, ALGORITHM:HEX or a line of a check file, whose tag says how
    /// it was made
    #[arg(help_heading = COPY, long, value_name = "VALUE")]
    pub expect: Option<OsString>,

    /// Fail unless the destination holds the content of this block map, bmap or other index
    #[arg(
        help_heading = COPY, long, value_name = "MAP", value_hint = ValueHint::FilePath,
        conflicts_with_all = ["delta_from", "apply", "map", "resume"]
    )]
    pub expect_map: Option<PathBuf>,

    /// Write a line that states how the checksum was made: TAG (DESTINATION) = CHECKSUM
    #[arg(help_heading = OUTPUT, long, conflicts_with = "json")]
    pub tag: bool,

    /// Write a JSON object
    #[arg(help_heading = OUTPUT, long)]
    pub json: bool,

    /// Print nothing, and no notes
    #[arg(help_heading = OUTPUT, short, long, conflicts_with_all = ["tag", "json", "verbose"])]
    pub quiet: bool,

    /// Say what was written and what was compared
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

    /// Also write the block map of the content to FILE, with a checkpoint every 30 seconds, from which --resume continues
    #[arg(help_heading = OUTPUT, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub map: Option<PathBuf>,

    /// Seconds between two checkpoints of the map [default: 30]
    #[arg(
        help_heading = OUTPUT, long, value_name = "SECONDS", requires = "map",
        value_parser = parse_seconds, hide_short_help = true
    )]
    pub checkpoint: Option<Duration>,

    /// Digest algorithm [default: sha256]
    #[arg(
        help_heading = CHECKSUM, short, long, value_name = "NAME",
        value_parser = Named::<Algorithm>::of(digest_names), hide_possible_values = true
    )]
    pub digest: Option<Algorithm>,

    /// Construction of the checksum, as for blksum [default: streams:4]
    #[arg(help_heading = CHECKSUM, long, value_name = "HOW", hide_short_help = true)]
    pub construction: Option<Construction>,

    /// Size of the blocks, a power of two from 512 to 64M [default: 64K]
    #[arg(help_heading = CHECKSUM, long, value_name = "SIZE", value_parser = parse_block_size, hide_short_help = true)]
    pub block_size: Option<BlockSize>,

    /// Only partition N of the source
    #[arg(help_heading = IMAGES, long, value_name = "N", value_parser = Count::of(1..=u32::MAX))]
    pub partition: Option<u32>,

    #[command(flatten)]
    pub opening: Opening,

    /// Number of threads [default: one for each processor]
    #[arg(help_heading = SPEED, long, value_name = "N", value_parser = Count::of(1..=1024_u16))]
    pub threads: Option<u16>,

    /// Print this help
    #[arg(help_heading = OTHER, short, long, action = ArgAction::HelpShort)]
    help: (),

    /// Print the version
    #[arg(help_heading = OTHER, short = 'V', long, action = ArgAction::Version)]
    version: (),
}

impl Args {
    /// Returns whether only a part of the source is copied, which a list or a bitmap names.
    pub fn is_partial(&self) -> bool {
        self.bitmap.is_some() || self.changes.is_some()
    }

    /// Returns whether the destination has another state of the content, of which only a part is overwritten.
    pub fn needs_old(&self) -> bool {
        self.apply || self.is_partial() || self.destination_map.is_some()
    }
}

/// What is compared with the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    ReadBack,
    Source,
    None,
}

impl Verification {
    /// Returns what the library compares.
    pub fn of_copy(self) -> Verify {
        match self {
            Self::ReadBack => Verify::ReadBack,
            Self::Source | Self::None => Verify::Source,
        }
    }
}

/// Whether the copy may share storage with the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reflink {
    Auto,
    Never,
}

names!(Reflink { Auto = "auto", Never = "never" });

names!(Verification { ReadBack = "readback", Source = "source", None = "none" });

const COPY: &str = "Copy";
const OUTPUT: &str = "Output";
const CHECKSUM: &str = "Checksum";
const OTHER: &str = "Other";

const ABOUT: &str = "\
Copy a disk image, and print the checksum of what the destination holds.

The source may have any format, and the destination is raw. What is written is read back, around the page \
cache where that is possible, and compared with what was read from the source.";

const AFTER_HELP: &str = "\
Examples:
  blkcopy disk.qcow2 disk.raw               copy to a new file, which is sparse
  blkcopy --force disk.qcow2 /dev/sdX       overwrite a device
  blkcopy --update disk.qcow2 /dev/sdX      write only what differs
  blkcopy disk.qcow2 nbd://host/export      copy to an NBD server, such as qemu-nbd

Exit status is 0 if the destination holds the content of the source, 1 if it holds something else or --expect \
or --expect-map does not match, 2 on an error, 3 if the source or the destination changed meanwhile. The manual page blkcopy(1) has more.";
