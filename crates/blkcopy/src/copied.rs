//! The result of a copy.

use std::ops::Range;

use blkhash::Digest;
use blkimage::ReadMethod;

/// The result of a copy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Copied {
    /// The checksums, in the order of their parameters.
    pub digests: Vec<Digest>,
    /// Number of bytes of the content.
    pub size: u64,
    /// What became of the bytes of the destination. `None` for a stream, to which all of them were written.
    pub amounts: Option<Amounts>,
    /// The way in which the destination was read back. `None` if it was not.
    pub read_back: Option<ReadMethod>,
    /// Number of bytes of the destination, which may be more than were copied. `None` if it was not read back.
    pub destination_size: Option<u64>,
    /// The places that [`update`](crate::Job::update) replaced, by offset, in units of 4 KiB. `None` if all was written, or if
    /// there are too many.
    pub replaced: Option<Vec<Range<u64>>>,
}

/// Numbers of bytes, by what a copy did with them. The sum is the size of the content, or of what a delta has of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// They were written.
    pub written: u64,
    /// They became or stayed zero without being written.
    pub zeroed: u64,
    /// The destination had them already.
    pub equal: u64,
    /// The destination shares their storage with the source.
    pub shared: u64,
}

impl Copied {
    /// A copy that was not read back.
    pub(crate) fn new(digests: Vec<Digest>, size: u64, amounts: Option<Amounts>) -> Self {
        Self { digests, size, amounts, read_back: None, destination_size: None, replaced: None }
    }
}
