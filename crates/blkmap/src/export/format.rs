//! The formats of exports.

use std::fmt;
use std::str::FromStr;

/// A format that a map is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// `OFFSET LENGTH DIGEST`, one line for each block with data. A run of zeros has `zero` instead of a digest,
    /// a run of unknown blocks `unknown`.
    Lines,
    /// A table with the columns `block,offset,length,kind,digest`. A run of zeros or of unknown blocks is one row.
    Csv,
    /// An object on each line for a block with data, a run of zeros or a run of unknown blocks, and a summary on
    /// the last one.
    Json,
    /// The block map of bmaptool, version 2.0, with a range for each block with data.
    Bmap,
    /// The fixed index of a Proxmox backup, with chunks of the block size. It has no time, and its UUID depends on the
    /// content.
    Fidx,
    /// The index of casync, with chunks of the block size.
    Caibx,
    /// The digests of all blocks, one after the other. For sha256 and blocks of 4096 bytes, this is the block hash index
    /// of RAUC.
    Raw,
}

impl Format {
    /// All formats.
    pub const ALL: &[Self] =
        &[Self::Lines, Self::Csv, Self::Json, Self::Bmap, Self::Fidx, Self::Caibx, Self::Raw];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Bmap => "bmap",
            Self::Fidx => "fidx",
            Self::Caibx => "caibx",
            Self::Raw => "raw",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().copied().find(|format| format.name() == name);
        found.ok_or_else(|| crate::foreign::one_of(Self::ALL.iter().map(|format| format.name())))
    }
}
