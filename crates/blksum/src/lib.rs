//! Checksums of disk images, whatever their format: the way from a [`blkimage::Source`] to a
//! checksum, and the files that checksums are kept in.

pub mod check_file;
mod error;
mod memory;
mod method;
mod pipeline;
mod plan;
mod progress;
mod slots;
mod tag;

pub use error::Error;
pub use pipeline::{MAX_BUFFER, Tuning, checksum};
pub use progress::Progress;
pub use tag::{Tag, UnknownTag};
