//! Indexes of the blocks of a disk in the formats of other programs.
//!
//! [`Index::open`] recognises an index and reads its parameters. [`Index::write`] passes its digests to a
//! [`blkmap::Writer`]. [`open`] makes a map in a temporary file, so that an index is read wherever a map is. [`export`]
//! writes a map in a format. [`Bmap`] has checksums of ranges of several blocks, of which no map can be made. [`Format`] has a
//! row for each format, whose file has its `Codec`: how it is recognised, read and written.
//!
//! An index may come from an untrusted source. It is read in order and not kept, and nothing is allocated for a number in it.

#![deny(clippy::missing_errors_doc)]

mod bmap;
mod bytes;
mod caibx;
mod codec;
mod csv;
mod digests;
mod export;
mod fidx;
mod format;
mod index;
mod json;
mod lines;
mod open;
mod pieces;
mod raw;
mod s3;
mod shape;
mod spool;
mod target;
mod text;
mod walk;

pub use bmap::{Bmap, BmapRanges};
pub use export::export;
pub use format::Format;
pub use index::Index;
pub use open::{Opened, open};
pub use shape::Options;

/// Runs the example of README.md as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
