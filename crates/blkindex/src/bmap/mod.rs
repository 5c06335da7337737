//! The block map of bmaptool: XML with ranges of blocks and a checksum for each range. Versions 2.0, 1.4 and 1.3 are read,
//! and 2.0 is written.
//!
//! The file has its own checksum, the digest of the file with zeros instead of the digits.

mod head;
mod names;
mod read;
mod write;
mod xml;

pub use self::read::{Bmap, BmapRanges};

use self::head::is_start;
use self::read::open;
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
