//! The checksum that a server stores with an object.

use std::ffi::OsStr;

use blkhash::Algorithm;
use blkimage::{ChecksumAlgorithm, ChecksumKind, Location, OpenOptions, StoredChecksum};
use blksum::expect::Value;
use blksum::{Encoding, Tag};

use super::expected::Expected;
use crate::problem::Problem;

/// Asks the server of the object at a URL for its checksum. Of several, returns the one that detects the most.
///
/// # Errors
///
/// Fails if `name` is no such URL, the server cannot be asked, or it stores no checksum that is computed here.
pub fn ask(name: &OsStr, open: &OpenOptions) -> Result<Expected, Problem> {
    let Some(url) = Location::new(name).url() else {
        return Err(Problem::new("is no object on a server, which alone has a stored checksum"));
    };
    let stored = open.stored_checksums(url).map_err(|error| Problem::of_image(&error, name))?;
    let found = stored.iter().find_map(expected);
    found.ok_or_else(|| Problem::new("its server stores no checksum of it"))
}

/// Returns a checksum as a value to expect. `None` if it is not computed here.
fn expected(stored: &StoredChecksum) -> Option<Expected> {
    let algorithm = match stored.algorithm {
        ChecksumAlgorithm::Md5 => Algorithm::Md5,
        ChecksumAlgorithm::Sha1 => Algorithm::Sha1,
        ChecksumAlgorithm::Sha256 => Algorithm::Sha256,
        ChecksumAlgorithm::Crc32 => Algorithm::Crc32,
        ChecksumAlgorithm::Crc32c => Algorithm::Crc32c,
        ChecksumAlgorithm::Crc64Nvme => Algorithm::Crc64Nvme,
        _ => return None,
    };
    let mut value = Value::of(algorithm, stored.value.clone()).ok()?;
    let mut text = format!("{algorithm}:{}", Encoding::Hex.encode(&value.digest));
    let tag = match &stored.kind {
        ChecksumKind::Whole => Some(Tag::File(algorithm)),
        ChecksumKind::Composite { count, .. } => {
            value.parts = Some(u64::from(*count));
            text += &format!("-{count}");
            None
        }
        _ => return None,
    };
    Some(Expected { text, value, tag, name: None, is_stored: false })
}
