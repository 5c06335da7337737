//! Options that say which content of an image is read, and how.

use std::ffi::OsString;

use blkhash::Salt;
use blkimage::OpenOptions;

use crate::image::args::Opening;
use crate::problem::Failure;
use crate::progress::ProgressArgs;
use crate::values::Count;

/// Options that say which content is read, and how.
#[derive(Debug, clap::Args)]
#[command(mut_arg("max-zeros", |size| size.help(MAX_ZEROS_HELP)))]
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

    #[command(flatten)]
    pub opening: Opening,

    #[command(flatten)]
    pub progress: ProgressArgs,
}

impl SourceArgs {
    /// See [`Opening::confine`].
    pub fn confine<'a>(
        &self,
        names: impl IntoIterator<Item = &'a OsString>,
    ) -> Result<OpenOptions, Failure> {
        self.opening.confine(names)
    }

    /// Returns the first given option that says what of an image is read.
    pub fn of_content(&self) -> Option<String> {
        self.partition.map(|_| "--partition".to_owned()).or_else(|| self.opening.of_content())
    }
}

fn salt(text: &str) -> Result<Salt, String> {
    if text == "-" {
        Ok(Salt::EMPTY)
    } else {
        text.parse().map_err(|error: blkhash::InvalidSalt| error.to_string())
    }
}

const MAX_ZEROS_HELP: &str = "Refuse images with more than SIZE of unallocated zeros [default: 2^28 blocks if the tree is written or \
     compared, otherwise no limit]";
