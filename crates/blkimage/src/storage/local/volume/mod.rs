//! Where the bytes of a file are on its volume, as the file system reports it.
//!
//! Two files that share an extent, because one is a reflink copy of the other or is in a snapshot, have the same bytes
//! there. Only btrfs and XFS are trusted: they never write to an extent that two files share, and say which ones these
//! are. An extent counts only if the file system calls it shared and says nothing about it that is not known here.
//! Everything else has no place, so that it is read.

mod reply;

use std::fs::File;

use crate::identity::{Volume, VolumeId};
use crate::origin::{Dirty, Origin, OriginKind};
use crate::sys::{self, Stamp};

/// Returns the volume of a regular file with this stamp. `None` if it is unknown, or the file shares no extents.
pub(super) fn of(file: &File, stamp: Stamp) -> Option<VolumeId> {
    let volume = match sys::volume_of(file)? {
        sys::Volume::Btrfs(id) => Volume::Btrfs(id),
        sys::Volume::Xfs => Volume::Xfs(stamp.identity.0),
    };
    Some(volume.into())
}

/// Returns where the bytes of a file on this volume are, as
/// [`Storage::volume_origins`](crate::Storage::volume_origins) does.
pub(super) fn origins(
    volume: VolumeId,
    file: &File,
    offset: u64,
    limit: u64,
    dirty: Dirty,
) -> Vec<Origin> {
    let end = offset.saturating_add(limit);
    match sys::volume_extents(file, offset, limit, dirty == Dirty::WriteBack) {
        Ok(reply) => reply::origins(&reply, volume, offset..end),
        Err(_) => vec![Origin { offset, length: limit, kind: OriginKind::Other }],
    }
}
