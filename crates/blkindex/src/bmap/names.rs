//! The names of digests in a bmap.

use blkhash::Algorithm;

/// The digests that bmaptool knows, and their names in it.
pub(super) const DIGESTS: [(Algorithm, &str); 6] = [
    (Algorithm::Sha256, "sha256"),
    (Algorithm::Sha512, "sha512"),
    (Algorithm::Sha384, "sha384"),
    (Algorithm::Sha224, "sha224"),
    (Algorithm::Sha1, "sha1"),
    (Algorithm::Md5, "md5"),
];
