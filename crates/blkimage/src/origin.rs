//! Where the guest bytes of a source come from.
//!
//! Two images that share a part of their chains, for example overlays over one backing file, need not be
//! read where both get their bytes from one place. The rule is conservative: equal places mean equal
//! bytes, and bytes whose place cannot be named have none.

use crate::identity::{FileId, VolumeId};
use crate::{Extent, ExtentKind};

/// A run of guest bytes that come from one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Offset of the first guest byte.
    pub offset: u64,
    /// Length in bytes, never 0.
    pub length: u64,
    /// Where the bytes are.
    pub kind: OriginKind,
}

/// Where the bytes of an [`Origin`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginKind {
    /// Nowhere, because they are zero.
    Zero,
    /// In a file of this host or on a volume, from this place on.
    Stored(Place),
    /// Anywhere else. Nothing is known about the bytes.
    Other,
}

/// A place in a file of this host, or on the volume that holds the file.
///
/// Runs of the same length at equal places have equal bytes, whichever images of this process they
/// belong to, and as long as both images pass
/// [`Source::check_unchanged`](crate::Source::check_unchanged). Runs at different places may also have
/// equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    holder: Holder,
    /// Offset in the holder, or in the decoded bytes.
    offset: u64,
    encoding: Option<Encoding>,
}

/// What holds the bytes of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    File(FileId),
    Volume(VolumeId),
}

/// Treatment of bytes that are not on the volume yet, by a query of places on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dirty {
    /// They stay where they are. The places of these bytes may have held older ones, so equal places only suggest equal
    /// bytes.
    Ignore,
    /// They are written first.
    WriteBack,
}

/// An encoded range of a file, and how it is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encoding {
    /// Offset of the encoded bytes in the file.
    pub offset: u64,
    /// Maximum number of encoded bytes.
    pub length: u64,
    /// Name of the method.
    pub method: &'static str,
    /// Number of decoded bytes.
    pub decoded: u64,
}

impl Origin {
    /// Returns the offset of the guest byte after the run.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// Appends the run to others, or extends the last one if it continues that.
    pub(crate) fn append_to(self, origins: &mut Vec<Self>) {
        match origins.last_mut() {
            Some(last) if last.kind.advanced(last.length) == self.kind => {
                last.length += self.length;
            }
            _ => origins.push(self),
        }
    }
}

impl From<Extent> for Origin {
    /// Returns the origin of an extent of which only the kind is known.
    fn from(extent: Extent) -> Self {
        let kind = match extent.kind {
            ExtentKind::Data => OriginKind::Other,
            ExtentKind::Zero => OriginKind::Zero,
        };
        Self { offset: extent.offset, length: extent.length, kind }
    }
}

impl OriginKind {
    /// Returns the origin of the bytes `distance` bytes further into a run of this kind.
    #[must_use]
    pub fn advanced(self, distance: u64) -> Self {
        match self {
            Self::Stored(place) => Self::Stored(place.advanced(distance)),
            Self::Zero | Self::Other => self,
        }
    }
}

impl Place {
    /// Creates the place of bytes that are at `offset` in a file as they are.
    pub(crate) fn plain(file: FileId, offset: u64) -> Self {
        Self { holder: Holder::File(file), offset, encoding: None }
    }

    /// Creates the place of the byte `within` a run that is decoded as a whole.
    pub(crate) fn encoded(file: FileId, encoding: Encoding, within: u64) -> Self {
        Self { holder: Holder::File(file), offset: within, encoding: Some(encoding) }
    }

    /// Creates the place of bytes that are at `offset` on a volume as they are.
    pub(crate) fn on_volume(volume: VolumeId, offset: u64) -> Self {
        Self { holder: Holder::Volume(volume), offset, encoding: None }
    }

    /// Returns whether both are places of bytes as they are, in two files, which may share an extent.
    pub fn is_in_other_file(&self, other: &Self) -> bool {
        self.encoding.is_none() && other.encoding.is_none() && self.holder != other.holder
    }

    /// Returns the place `distance` bytes further.
    #[must_use]
    pub fn advanced(self, distance: u64) -> Self {
        Self { offset: self.offset.saturating_add(distance), ..self }
    }
}
