//! Describes for users how storages are read.

use std::fmt;

use crate::compression::Compression;

/// A method of reading the bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadMethod {
    /// Through the page cache of this host.
    PageCache,
    /// Through the page cache where the bytes are resident, and past it elsewhere.
    ResidentPageCache,
    /// Past the page cache.
    Direct,
    /// From an NBD server.
    Nbd,
    /// From an HTTP or S3 server.
    Http,
    /// By decompressing the file.
    Decompressed(Compression),
    /// From a storage of the caller's.
    Other,
}

impl ReadMethod {
    /// A word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::PageCache => "page-cache",
            Self::ResidentPageCache => "resident-page-cache",
            Self::Direct => "direct",
            Self::Nbd => "nbd",
            Self::Http => "http",
            Self::Decompressed(_) => "decompressed",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for ReadMethod {
    /// Completes the sentence "The file is read".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Decompressed(compression) => {
                return write!(f, "by decompressing it ({compression})");
            }
            Self::PageCache => "through the page cache",
            Self::ResidentPageCache => "through the page cache where resident, past it elsewhere",
            Self::Direct => "past the page cache",
            Self::Nbd => "over NBD",
            Self::Http => "over HTTP",
            Self::Other => "from other storage",
        })
    }
}
