//! The formats of indexes, and the suffixes of their names.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;

/// A format of indexes of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexFormat {
    /// The fixed index of a Proxmox backup, `.fidx`.
    Fidx,
    /// The index of a file in the chunk store of casync, `.caibx`, with chunks of one length.
    Caibx,
    /// The block map of bmaptool, version 2.0, with a range for each block.
    Bmap,
    /// The parts of an object of S3, as `GetObjectAttributes` returns them in JSON.
    S3,
    /// The lines of [`Format::Lines`](crate::Format::Lines). Digests may be in base64.
    Lines,
    /// The table of [`Format::Csv`](crate::Format::Csv).
    Csv,
    /// The objects of [`Format::Json`](crate::Format::Json).
    Json,
    /// Digests and nothing else, one after the other, such as the block hash index of RAUC.
    Raw,
}

impl IndexFormat {
    /// All formats.
    pub const ALL: &[Self] = &[
        Self::Fidx,
        Self::Caibx,
        Self::Bmap,
        Self::S3,
        Self::Lines,
        Self::Csv,
        Self::Json,
        Self::Raw,
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fidx => "fidx",
            Self::Caibx => "caibx",
            Self::Bmap => "bmap",
            Self::S3 => "s3",
            Self::Lines => "lines",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Raw => "raw",
        }
    }

    /// Returns a noun for messages, such as `a .fidx index`.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Fidx => "a .fidx index",
            Self::Caibx => "a .caibx index",
            Self::Bmap => "a bmap",
            Self::S3 => "a list of parts of S3",
            Self::Lines | Self::Csv | Self::Json => "a list of digests",
            Self::Raw => "a block hash index",
        }
    }

    /// Returns whether the name is that of an index by its suffix. The content is not looked at.
    pub fn has_suffix(name: &OsStr) -> bool {
        SUFFIXES.iter().any(|suffix| name.as_bytes().ends_with(suffix))
    }

    /// Returns the name without the suffix of an index.
    pub fn without_suffix(name: &OsStr) -> &OsStr {
        let bytes = name.as_bytes();
        let rest = SUFFIXES.iter().find_map(|suffix| bytes.strip_suffix(*suffix));
        OsStr::from_bytes(rest.filter(|rest| !rest.is_empty()).unwrap_or(bytes))
    }
}

impl fmt::Display for IndexFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for IndexFormat {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        let found = Self::ALL.iter().copied().find(|format| format.name() == name);
        found.ok_or_else(|| one_of(Self::ALL.iter().map(|format| format.name())))
    }
}

/// Says which names there are.
pub(crate) fn one_of(names: impl Iterator<Item = &'static str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("use {} or {last}", others.join(", "))
        }
        _ => format!("use {}", names.concat()),
    }
}

/// The end of the name of a block hash index of RAUC.
pub(super) const RAUC: &[u8] = b".block-hash-index";

/// The suffixes of indexes.
const SUFFIXES: [&[u8]; 4] = [b".fidx", b".caibx", b".bmap", RAUC];
