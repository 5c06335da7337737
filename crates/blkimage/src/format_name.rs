//! Names of formats and compressions together.

use std::fmt;
use std::str::FromStr;

use crate::compression::Compression;
use crate::probe::Format;
use crate::unknown_name::UnknownName;

/// The format of a file, its compression as a whole, or both: `qcow2`, `gzip` or `raw+gzip`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormatName {
    /// The format of the image. `None` detects it.
    pub format: Option<Format>,
    /// The compression. `None` is none if there is a format.
    pub compression: Option<Compression>,
}

impl FromStr for FormatName {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let (format, compression) = match (name.split_once('+'), compression(name)) {
            (Some((format, name)), _) => (Some(format.parse()?), Some(compression(name)?)),
            (None, Ok(compression)) => (None, Some(compression)),
            (None, Err(_)) => (Some(name.parse()?), None),
        };
        Ok(Self { format, compression })
    }
}

/// Returns the compression of this name, which may be the extension of files.
fn compression(name: &str) -> Result<Compression, UnknownName> {
    match name {
        "gz" => Ok(Compression::Gzip),
        "zst" => Ok(Compression::Zstd),
        "bz2" => Ok(Compression::Bzip2),
        _ => name.parse().map_err(|_| UnknownName::FORMAT),
    }
}

impl fmt::Display for FormatName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.format, self.compression) {
            (Some(format), Some(compression)) => write!(f, "{format}+{compression}"),
            (Some(format), None) => format.fmt(f),
            (None, Some(compression)) => compression.fmt(f),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in ["raw", "gzip", "raw+gzip", "qcow2+xz"] {
            assert_eq!(name.parse::<FormatName>().unwrap().to_string(), name);
        }
        assert_eq!("raw+gz".parse::<FormatName>().unwrap().to_string(), "raw+gzip");
        for name in ["", "+", "raw+", "+gzip", "gzip+raw", "raw+raw", "raw+gzip+xz", "GZIP"] {
            assert_eq!(name.parse::<FormatName>(), Err(UnknownName::FORMAT), "{name}");
        }
    }
}
