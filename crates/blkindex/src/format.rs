//! The formats of indexes.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;

use crate::codec::Codec;

/// Defines [`Format`]. A row has the variant and the module of the format.
macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident: $module:ident;)*) => {
        /// A format of indexes of blocks. Each is read, and [`export`](crate::export()) writes all but one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[$doc])* $format,)*
        }

        impl Format {
            /// All formats.
            pub const ALL: &[Self] = &[$(Self::$format,)*];

            pub(crate) const fn codec(self) -> &'static Codec {
                match self {
                    $(Self::$format => &crate::$module::CODEC,)*
                }
            }
        }
    };
}

formats! {
    /// `OFFSET LENGTH DIGEST`, one line for each block with data. A run of zeros has `zero` instead of a digest,
    /// a run of unknown blocks `unknown`. Digests that are read may be in base64.
    Lines: lines;
    /// A table with the columns `block,offset,length,kind,digest`. A run of zeros or of unknown blocks is one row.
    Csv: csv;
    /// An object on each line for a block with data, a run of zeros or a run of unknown blocks, and a summary on
    /// the last one.
    Json: json;
    /// The block map of bmaptool, with a range for each block with data. [`Bmap`](crate::Bmap) reads longer ranges.
    Bmap: bmap;
    /// The fixed index of a Proxmox backup, with chunks of the block size. One that is written has no time, and its UUID
    /// depends on the content.
    Fidx: fidx;
    /// The index of a file in the chunk store of casync, with chunks of the block size.
    Caibx: caibx;
    /// The parts of an object of S3, as `GetObjectAttributes` returns them in JSON. It is read only.
    S3: s3;
    /// The digests of all blocks, one after the other. For sha256 and blocks of 4096 bytes, this is the block hash index
    /// of RAUC.
    Raw: raw;
}

impl Format {
    /// Returns the name, which [`FromStr`] takes.
    pub const fn name(self) -> &'static str {
        self.codec().name
    }

    /// Returns a noun for messages, such as `a .fidx index`.
    pub const fn noun(self) -> &'static str {
        self.codec().noun
    }

    /// Returns whether [`export`](crate::export()) writes the format.
    pub const fn is_written(self) -> bool {
        self.codec().write.is_some()
    }

    /// Returns the format of this name that [`export`](crate::export()) writes.
    ///
    /// # Errors
    ///
    /// Fails if there is none. The error has the names that there are.
    pub fn written(name: &str) -> Result<Self, String> {
        Self::named(name, Self::is_written)
    }

    fn named(name: &str, is_allowed: fn(Self) -> bool) -> Result<Self, String> {
        let formats = || Self::ALL.iter().copied().filter(|format| is_allowed(*format));
        formats().find(|format| format.name() == name).ok_or_else(|| {
            let names: Vec<&str> = formats().map(Self::name).collect();
            let (last, others) = names.split_last().expect("there are formats");
            format!("use {} or {last}", others.join(", "))
        })
    }

    /// Returns whether the name is an index's by its suffix. The content is not looked at.
    pub fn has_suffix(name: &OsStr) -> bool {
        Self::ALL.iter().any(|format| format.name_without_suffix(name).is_some())
    }

    /// Returns the name without the suffix of an index.
    pub fn without_suffix(name: &OsStr) -> &OsStr {
        let rest = Self::ALL.iter().find_map(|format| format.name_without_suffix(name));
        rest.filter(|rest| !rest.is_empty()).unwrap_or(name)
    }

    /// Returns a name without the suffix of this format, if it has that.
    pub(crate) fn name_without_suffix(self, name: &OsStr) -> Option<&OsStr> {
        name.as_bytes().strip_suffix(self.codec().suffix?.as_bytes()).map(OsStr::from_bytes)
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
        Self::named(name, |_| true)
    }
}
