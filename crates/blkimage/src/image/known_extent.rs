//! Holes of files where layers map bytes.
//!
//! A layer knows where its bytes are in a file, and the file system knows where the file has holes.
//! A preallocated image maps all of its content, and may still store none of it.

use std::ptr;

use crate::error::Result;
use crate::storage::HostFile;
use crate::{Extent, ExtentKind};

/// The extent of a file that was used last. However many runs a layer maps into one extent of a file, the
/// storage is asked once.
#[derive(Default)]
pub(super) struct KnownExtent<'a>(Option<(&'a HostFile, Extent)>);

impl<'a> KnownExtent<'a> {
    /// Returns the kind of the bytes from `offset` on in `file`, and for how many of them it is true, at
    /// most `length`. Bytes past the end of the file are data, so that reading them fails.
    ///
    /// `length` is the length of a run of a layer, and `wanted` the number of bytes that the caller asked the
    /// layer for.
    pub fn meet(
        &mut self,
        file: &'a HostFile,
        offset: u64,
        length: u64,
        wanted: u64,
    ) -> Result<(ExtentKind, u64)> {
        let left = file.size().saturating_sub(offset);
        let is_costly = file.queue_depth() > 1 && length < MIN_REMOTE.min(wanted);
        if left == 0 || is_costly {
            return Ok((ExtentKind::Data, length));
        }
        let extent = match self.0 {
            Some((known, extent)) if ptr::eq(known, file) && extent.contains(offset) => extent,
            _ => file.extent(offset, left)?,
        };
        self.0 = Some((file, extent));
        Ok((extent.kind, length.min(extent.end() - offset)))
    }
}

/// Minimum length of a run in a file of a remote server for a query, in bytes. A query takes a round
/// trip, in which shorter runs can be read, and clusters may be in any order. A run that is all that the caller wants
/// is always worth one, as in a raw image.
const MIN_REMOTE: u64 = 64 << 20;

#[cfg(test)]
mod tests;
