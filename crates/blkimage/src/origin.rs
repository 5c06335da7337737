//! Where the guest bytes of a source come from.
//!
//! Two images that share a part of their chains, for example overlays over one backing file, need not be
//! read where both get their bytes from one place. The rule is conservative: equal places mean equal
//! bytes, and bytes whose place cannot be named have none.

use crate::storage::FileId;
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
    /// In a file of this host, from this place on.
    Stored(Place),
    /// Anywhere else. Nothing is known about the bytes.
    Other,
}

/// A place in a file of this host.
///
/// Runs of the same length at equal places have equal bytes, whichever images of this process they
/// belong to, and as long as both images pass
/// [`Source::check_unchanged`](crate::Source::check_unchanged). Runs at different places may also have
/// equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    file: FileId,
    /// Offset in the file, or in the decoded bytes.
    offset: u64,
    encoding: Option<Encoding>,
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
    /// Creates the place of bytes that lie at `offset` in a file as they are.
    pub(crate) fn plain(file: FileId, offset: u64) -> Self {
        Self { file, offset, encoding: None }
    }

    /// Creates the place of the byte `within` a run that is decoded as a whole.
    pub(crate) fn encoded(file: FileId, encoding: Encoding, within: u64) -> Self {
        Self { file, offset: within, encoding: Some(encoding) }
    }

    /// Returns the place `distance` bytes further.
    #[must_use]
    pub fn advanced(self, distance: u64) -> Self {
        Self { offset: self.offset.saturating_add(distance), ..self }
    }
}
