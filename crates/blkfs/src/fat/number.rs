//! Numbers of files and directories, which FAT and exFAT do not have.

use crate::visitor::ObjectId;

/// Number of the root directory.
pub(crate) const ROOT: ObjectId = 2;

/// Number of an object whose entry is the first one.
const FIRST: ObjectId = 3;

/// Makes numbers from the places of directory entries, as The Sleuth Kit does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    /// Offset of the first directory entry that can be.
    start: u64,
}

impl Numbers {
    pub fn new(start: u64) -> Self {
        Self { start }
    }

    /// Returns the number of the object whose entry is at an offset.
    pub fn at(self, offset: u64) -> ObjectId {
        offset.saturating_sub(self.start) / 32 + FIRST
    }

    /// Returns the offset of the entry of an object, or of the first one.
    pub fn offset(self, object: ObjectId) -> u64 {
        self.start.saturating_add(object.saturating_sub(FIRST).saturating_mul(32))
    }
}
