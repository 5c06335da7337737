//! Computes checksums of disk images of any format, from a [`blkimage::Source`] to a checksum,
//! compares two images, writes and verifies [maps](map) of images, and reads and writes check files.

#![deny(clippy::missing_errors_doc)]

pub mod check_file;
mod checksum;
mod compare;
mod content;
mod crew;
mod differences;
mod encoding;
mod error;
pub mod expect;
mod in_order;
mod lane;
mod look_ahead;
pub mod map;
mod memory;
mod part;
mod pipeline;
mod plan;
mod progress;
mod selected;
mod semaphore;
mod sides;
mod stream;
mod sync;
mod tag;
mod time;
mod tuning;

pub use checksum::{block_digests, checksum, checksums, checksums_and_blocks};
pub use compare::{ComparedRun, compare, first_nonzero};
pub use content::{Content, UnknownContent, Unrecordable};
pub use differences::{Difference, differences};
pub use encoding::{Encoding, decode_base64};
pub use error::Error;
pub use in_order::in_order;
pub use part::{Part, PartError};
pub use progress::Progress;
pub use selected::Selected;
pub use sides::{RelatedRun, Relation, Sides};
pub use stream::stream_checksums;
pub use tag::{ImageTag, Tag, UnknownTag};
pub use time::utc;
pub use tuning::{MAX_BUFFER, Tuning};

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
