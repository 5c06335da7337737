//! The block map of bmaptool, version 2.0: XML with ranges of blocks and a checksum for each range.
//!
//! The file has its own checksum, the digest of the file with zeros instead of the digits.

mod names;
mod read;
mod write;

use self::read::{is_start, open};
use self::write::write;
use crate::codec::{Codec, boxed};

pub(crate) const CODEC: Codec = Codec {
    name: "bmap",
    noun: "a bmap",
    suffix: Some(".bmap"),
    is_start,
    open: |file, _| open(file).map(boxed),
    write: Some(write),
};
