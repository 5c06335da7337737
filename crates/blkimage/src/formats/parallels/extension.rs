//! The cluster with format extensions.
//!
//! QEMU refuses all but dirty bitmaps. These are not read, and neither is the MD5 that covers them.

use crate::error::{ErrorKind, Result};
use crate::formats::fields::Head;
use crate::storage::HostFile;

/// Fails if the cluster at `offset` holds anything but dirty bitmaps.
pub(super) fn check(file: &HostFile, offset: u64, cluster: u64) -> Result<()> {
    if Head::read(file, offset, HEADER)?.le64(0) != MAGIC {
        return Err(file.corrupt("extensions do not begin with their magic").at(offset));
    }
    let end = offset + cluster;
    let mut at = offset + HEADER as u64;
    for _ in 0..MAX_FEATURES {
        if at + FEATURE as u64 > end {
            return Err(file.corrupt("extensions have no end").at(at));
        }
        let feature = Head::read(file, at, FEATURE)?;
        let (magic, flags, length) = (feature.le64(0), feature.le64(8), feature.le32(16));
        if flags != 0 || !matches!(magic, END | DIRTY_BITMAP) {
            let reason = format!("extension {magic:#x} with flags {flags:#x} is not read");
            return Err(file.error(ErrorKind::Unsupported, reason).at(at));
        }
        let next = at + FEATURE as u64 + u64::from(length);
        if next > end {
            return Err(file.corrupt("extension is larger than its cluster").at(at));
        }
        if magic == END {
            return Ok(());
        }
        at = offset + (next - offset).next_multiple_of(8);
    }
    let reason = format!("has more than {MAX_FEATURES} extensions");
    Err(file.error(ErrorKind::Unsupported, reason).at(offset))
}

/// The magic of the cluster, and the MD5 of what follows.
const HEADER: usize = 24;
/// The beginning of an extension: magic, flags, length and padding.
const FEATURE: usize = 24;

const MAGIC: u64 = 0xab23_4cef_23dc_ea87;
const END: u64 = 0;
const DIRTY_BITMAP: u64 = 0x2038_5fae_252c_b34a;

/// Maximum number of extensions of a parallels image. Real images have a few.
/// Limit in extensions.
const MAX_FEATURES: usize = 64;
