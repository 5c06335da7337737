//! The members of a tar archive (V7, ustar, GNU and PAX), found by their headers alone.
//!
//! A member has the content that both GNU tar and Python's tarfile extract. Where these differ, or where
//! one of them guesses, the archive is refused: a manifest, a checksum and an import must not be of
//! different bytes.

mod entry;
mod extended;
mod header;
mod reader;
mod sparse;

pub(crate) use self::entry::{Entry, Node};
#[cfg(feature = "compressed")]
pub(crate) use self::header::BLOCK;
pub use self::header::is_tar;
pub(crate) use self::reader::Reader;
#[cfg(feature = "compressed")]
pub(crate) use self::sparse::Sparse;
