//! The block map of bmaptool, version 2.0: XML with ranges of blocks and a checksum for each range.
//!
//! The file has its own checksum, the digest of the file with zeros instead of the digits.

mod read;
mod write;

use blkhash::Algorithm;

pub(crate) use read::{is_start, open};
pub(crate) use write::write;

/// The digests that bmaptool knows, and their names in it.
const DIGESTS: [(Algorithm, &str); 6] = [
    (Algorithm::Sha256, "sha256"),
    (Algorithm::Sha512, "sha512"),
    (Algorithm::Sha384, "sha384"),
    (Algorithm::Sha224, "sha224"),
    (Algorithm::Sha1, "sha1"),
    (Algorithm::Md5, "md5"),
];
