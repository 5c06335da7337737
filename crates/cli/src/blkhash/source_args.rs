//! Options that say which content of an image is read, and how.

use std::ffi::OsString;

use blkhash::Salt;
use blkimage::OpenOptions;

use super::opening::Opening;
use crate::progress::{When, when_names};
use crate::usage::Refusal;
use crate::values::{Count, Named, parse_large_size};

/// Options that say which content is read, and how.
#[derive(Debug, clap::Args)]
pub struct SourceArgs {
    /// Salt in hexadecimal: up to 32 bytes for fs-verity, 256 for dm-verity; - is none
    #[arg(short, long, value_name = "HEX", value_parser = salt, allow_hyphen_values = true)]
    pub salt: Option<Salt>,

    /// Only partition N of the image
    #[arg(long, value_name = "N", value_parser = Count::of(1..=u32::MAX))]
    pub partition: Option<u32>,

    /// Number of threads [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = Count::of(1..=1024_u16))]
    pub threads: Option<u16>,

    /// Refuse images with more zeros than SIZE that they do not store [default: 2^28 blocks if the tree is
    /// written or compared, otherwise no limit]
    #[arg(long, value_name = "SIZE", value_parser = parse_large_size)]
    pub max_zeros: Option<u64>,

    #[command(flatten)]
    pub opening: Opening,

    /// Show progress on the terminal: auto, always or never; json writes an object a second
    /// [default: auto, where it takes longer than a second; without a value: always]
    #[arg(
        short, long, value_name = "WHEN",
        num_args = 0..=1, require_equals = true, default_missing_value = "always",
        value_parser = Named::<When>::of(when_names), hide_possible_values = true
    )]
    pub progress: Option<When>,
}

impl SourceArgs {
    /// Like [`Opening::confine`], with the limit on zeros.
    pub fn confine<'a>(
        &self,
        names: impl IntoIterator<Item = &'a OsString>,
    ) -> Result<OpenOptions, Refusal> {
        Ok(self.opening.confine(names)?.max_unstored(self.max_zeros))
    }
}

fn salt(text: &str) -> Result<Salt, String> {
    if text == "-" {
        Ok(Salt::EMPTY)
    } else {
        text.parse().map_err(|error: blkhash::InvalidSalt| error.to_string())
    }
}
