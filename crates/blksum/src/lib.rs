//! Computes checksums of disk images of any format, from a [`blkimage::Source`] to a checksum,
//! compares two images, writes and verifies [maps](map) and [trees](verity) of images, and reads and writes check files.
//!
//! Checksum of an image, and the line of a check file for it:
//!
//! ```
//! use blkhash::Parameters;
//! use blkimage::OpenOptions;
//! use blksum::check_file::{Form, Line, Parser, Style};
//! use blksum::{Content, Encoding, ImageTag, Progress, Tag, Tuning, checksum};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("disk.raw");
//! # std::fs::write(&path, [7; 100_000])?;
//! let parameters = Parameters::default();
//! let image = OpenOptions::new().open(&path)?;
//! let digest = checksum(&image, &parameters, &Tuning::default(), &Progress::new())?;
//!
//! let tag = Tag::Image(Box::new(ImageTag { parameters, content: Content::default() }));
//! let style = Style { form: Form::Tagged(tag.clone()), encoding: Encoding::Hex, zero: false };
//! let line = style.line(b"disk.raw", digest.as_bytes());
//!
//! let Line::Entry(entry) = Parser::new(parameters.algorithm()).parse(&line) else { panic!() };
//! assert_eq!((entry.tag, entry.digest), (Some(tag), digest.as_bytes().to_vec()));
//! # Ok(())
//! # }
//! ```
//!
//! [`map::write()`] and [`map::verify`] tell later, without the image, where a copy differs. [`differences`] compares
//! two images that are both there:
//!
//! ```
//! use blkhash::BlockSize;
//! use blkimage::OpenOptions;
//! use blksum::{Progress, Tuning, differences};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (path, copy) = (folder.path().join("disk.raw"), folder.path().join("copy.raw"));
//! # std::fs::write(&path, [7; 200_000])?;
//! # std::fs::write(&copy, [[7; 100_000], [8; 100_000]].concat())?;
//! let image = OpenOptions::new().open(&path)?;
//! let copy = OpenOptions::new().open(&copy)?;
//! let mut found = Vec::new();
//! let mut take = |difference| found.push(difference);
//! differences(
//!     &image,
//!     &copy,
//!     BlockSize::DEFAULT,
//!     &mut take,
//!     &Tuning::default(),
//!     &Progress::new(),
//! )?;
//! assert_eq!((found[0].offset, found[0].length), (65_536, 134_464));
//! # Ok(())
//! # }
//! ```

#![deny(clippy::missing_errors_doc)]

pub mod changes;
pub mod check_file;
mod checksum;
mod compare;
mod content;
mod crew;
mod differences;
mod encoding;
mod error;
pub mod expect;
mod implanted;
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
mod sums;
mod sync;
mod tag;
mod tee;
mod tuning;
mod unreadable;
pub mod verity;

pub use checksum::{Pass, block_digests, checksum, checksums};
pub use compare::{ComparedRun, compare, first_nonzero};
pub use content::{Conflict, Content, UnknownContent, Unrecordable};
pub use differences::{Difference, differences};
pub use encoding::{Encoding, decode_base64};
pub use error::Error;
pub use implanted::{ImplantedCheck, ImplantedDifference, check_implanted};
pub use in_order::in_order;
pub use part::{Part, PartError};
pub use progress::Progress;
pub use selected::Selected;
pub use sides::{RelatedRun, Relation, Sides};
pub use stream::stream_checksums;
pub use sums::check_sums;
pub use tag::{ImageTag, Tag, UnknownTag};
pub use tee::Tee;
pub use tuning::{MAX_BUFFER, Tuning};
pub use unreadable::{Retries, Unreadable};

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
