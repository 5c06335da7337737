//! One layer of a chain: the part of the guest content that one image of the chain provides.
//!
//! A layer reports where bytes are, and the [`Image`](crate::Image) reads them, unless they are stored
//! in an encoding that only the format knows. A layer knows nothing about the layers below.

use std::ops::Range;

use crate::acquisition::Acquisition;
use crate::backup::Backup;
use crate::bitmap::Bitmap;
use crate::check::{Summary, Visitor};
use crate::error::{Error, ErrorKind, Result};
use crate::origin::Place;
use crate::snapshot::Snapshot;
use crate::stated::Stated;
use crate::storage::HostFile;

/// An image of a chain without those beneath it.
///
/// Several threads may read a layer at once.
pub(crate) trait Layer: Send + Sync {
    /// Returns the size of the guest content in bytes.
    fn size(&self) -> u64;

    /// Returns one mapping for the guest bytes of `range`, which begins at the offset of the range.
    ///
    /// The mapping need not be maximal. With [`Purpose::Read`], fails if the bytes that
    /// it leads to are missing.
    fn map(&self, range: GuestRange, purpose: Purpose) -> Result<Mapping<'_>>;

    /// Fills `buf` with the guest bytes from `offset` on, for which the layer returned `stored`. Not
    /// called for layers that never return [`MappingKind::Opaque`].
    fn read(&self, stored: Stored, buf: &mut [u8], offset: u64) -> Result<()> {
        let _ = (stored, buf);
        Err(Error::new(ErrorKind::Argument, "", "layer has no encoding of its own").at(offset))
    }

    /// Returns the place of the guest byte at `offset`, for which the layer returned `stored`. `None` if
    /// it has to be read.
    fn place(&self, stored: Stored, offset: u64) -> Option<Place> {
        let _ = (stored, offset);
        None
    }

    /// Returns the file that holds `stored`, which the layer returned for the guest byte at `offset`, and how many bytes of it
    /// are likely to be read.
    fn encoded(&self, stored: Stored, offset: u64) -> Option<(&HostFile, u64)> {
        let _ = offset;
        Some((self.files().into_iter().next()?, stored.length))
    }

    /// Checks the structure, as in [`Image::check_structure`](crate::Image::check_structure). Returns `None` if the format has
    /// no checks.
    fn check_structure(&self, visitor: &mut dyn Visitor) -> Result<Option<Summary>> {
        let _ = visitor;
        Ok(None)
    }

    /// Returns the internal snapshots, as in [`Image::snapshots`](crate::Image::snapshots).
    fn snapshots(&self) -> Result<Option<Vec<Snapshot>>> {
        Ok(None)
    }

    /// Returns the bitmaps, as in [`Image::bitmaps`](crate::Image::bitmaps).
    fn bitmaps(&self) -> Result<Option<Vec<Bitmap>>> {
        Ok(None)
    }

    /// Returns the extents of a bitmap, as in [`Image::dirty_extents`](crate::Image::dirty_extents). Returns `None` if the
    /// layer has none that can be read.
    fn dirty_extents(&self, name: &[u8]) -> Result<Option<Vec<Range<u64>>>> {
        let _ = name;
        Ok(None)
    }

    /// Returns the checksums that the layer states of its content, as in
    /// [`Image::stated_checksums`](crate::Image::stated_checksums).
    fn stated(&self) -> Result<Option<Stated>> {
        Ok(None)
    }

    /// Returns what a forensic image says of how it was made, as in [`Image::acquisition`](crate::Image::acquisition).
    fn acquisition(&self) -> Option<&Acquisition> {
        None
    }

    /// Returns what an image of the used blocks of a file system says of it, as in [`Image::backup`](crate::Image::backup).
    fn backup(&self) -> Option<&Backup> {
        None
    }

    /// Returns the files that hold the layer, the image itself first.
    fn files(&self) -> Vec<&HostFile>;

    /// Returns the granularity of this layer, as in
    /// [`Source::granularity`](crate::Source::granularity).
    fn granularity(&self) -> u64 {
        self.files().iter().map(|file| file.granularity()).max().unwrap_or(1)
    }

    /// Returns the queue depth of this layer, as in
    /// [`Source::queue_depth`](crate::Source::queue_depth).
    fn queue_depth(&self) -> usize {
        self.files().iter().map(|file| file.queue_depth()).max().unwrap_or(1)
    }

    /// Fails if this layer changed, as in [`Source::check_unchanged`](crate::Source::check_unchanged).
    fn check_unchanged(&self) -> Result<()> {
        self.files().into_iter().try_for_each(HostFile::check_unchanged)
    }
}

/// Guest bytes to look up in a layer. Not empty, and `offset` is below the size of the layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GuestRange {
    pub offset: u64,
    /// Maximum useful length of a mapping, in bytes.
    pub limit: u64,
    /// Maximum useful length of a [`MappingKind::Below`], at least `limit`. The caller remembers these
    /// ranges and does not query them again.
    pub far: u64,
    /// Whether no layer is below. Zeros of this layer are then [`MappingKind::Below`] as well, so that runs of both are
    /// one.
    pub is_lowest: bool,
}

/// The purpose of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Distinguishes data from zeros, including holes that the host's file system reports.
    Extent,
    /// Reads the bytes.
    Read,
}

/// The place of a run of guest bytes in a layer.
#[derive(Clone, Copy)]
pub(crate) struct Mapping<'a> {
    pub kind: MappingKind<'a>,
    /// Length in bytes, never 0.
    pub length: u64,
}

/// The kind of place where the bytes of a [`Mapping`] are.
#[derive(Clone, Copy)]
pub(crate) enum MappingKind<'a> {
    /// In the layers below, or zero if there are none.
    Below,
    /// Nowhere, because they are zero.
    Zero,
    /// In a file, unencoded, from this offset on.
    Host { file: &'a HostFile, offset: u64 },
    /// In an encoding that only [`Layer::read`] can read, for example compressed.
    Opaque(Stored),
}

/// The bytes of a file that hold encoded guest content. Only the layer can decode them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub offset: u64,
    pub length: u64,
}
