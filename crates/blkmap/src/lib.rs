//! Block maps: files with the digest of every block of an image. docs/reference/map-format.md specifies the format.
//!
//! [`Writer`] is a sink for the digests of blocks and writes a map. [`Map`] opens a map, and [`Blocks`] hands
//! out its blocks as runs of digests and of zeros. Maps are compared with each other by [`diff`], and with
//! the digests of an image by [`Against`]. A map knows no images: the digests may come from anywhere.

#![deny(clippy::missing_errors_doc)]

mod against;
mod areas;
mod block_check;
mod blocks;
mod bytes;
mod check;
mod checksum;
mod collector;
mod commit;
mod diff;
mod digested_range;
mod directory;
mod dups;
mod error;
mod header;
mod key;
mod last_block;
mod last_commit;
mod log;
mod lookup;
mod map;
mod merge;
mod page;
mod page_hashes;
mod page_run;
mod pages;
mod recover;
mod report;
mod root;
mod seal;
mod storage;
mod table;
mod tail;
mod update;
mod writer;

use std::time::Duration;

pub use against::{Against, ImageEnd, Side};
pub use block_check::{BlockCheck, BlockVerdict};
pub use blocks::{BlockRun, Blocks};
pub use check::check;
pub use checksum::{checksum, parameters};
pub use collector::Collector;
pub use commit::{Commit, Seal};
pub use diff::diff;
pub use digested_range::DigestedRange;
pub use dups::{Dups, DupsSummary};
pub use error::{Error, Result};
pub use header::{Header, MAGIC};
pub use key::Key;
pub use log::Log;
pub use lookup::Lookup;
pub use map::Map;
pub use merge::merge;
pub use page_run::PageRun;
pub use recover::Recovered;
pub use report::{FindUnreadable, Report};
pub use seal::seal;
pub use storage::{Output, Pipe, ReadAt};
pub use tail::has_zero_tail;
pub use update::Update;
pub use writer::Writer;

/// Length of a page and alignment of every area of a map, in bytes.
pub const PAGE: usize = 4096;

/// Time between the checkpoints of a map, unless another one is chosen.
pub const CHECKPOINT: Duration = Duration::from_secs(30);

/// Maximum length of the info of a map, JSON about the image.
/// Limit in bytes.
pub const MAX_INFO: u64 = 1 << 20;

/// Runs the example of README.md as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
