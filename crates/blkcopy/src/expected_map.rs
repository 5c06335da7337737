//! Maps, bmaps and other indexes whose content a destination should hold.

use std::fs::File;
use std::sync::Arc;

use blkimage::Image;
use blkindex::Bmap;
use blkmap::{DigestedRange, Map};
use blksum::map::{RangePairing, verify};
use blksum::{Difference, Part, PartError, Progress, Relation, Selected, Tuning};

/// What the content of a destination should be.
pub struct ExpectedMap(Digests);

enum Digests {
    Blocks(Box<Map>),
    /// A bmap, which may have ranges of several blocks, and the number of bytes in them.
    Ranges(File, u64),
}

/// The reason why a destination is not, or cannot be, compared with a map as equal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotExpected {
    /// The map is of a content of another size.
    #[error("has {size} bytes, and the map is of {mapped}")]
    Size {
        /// Size of the content in bytes.
        size: u64,
        /// Size in the map, in bytes.
        mapped: u64,
    },
    /// The content differs from the map.
    #[error("differs from the map in {bytes} bytes, the first at {first}")]
    Differs {
        /// Number of bytes in blocks that differ.
        bytes: u64,
        /// Offset of the first of them.
        first: u64,
    },
    /// The map does not know all blocks.
    #[error("has no digests of {bytes} bytes")]
    Unknown {
        /// Number of bytes in blocks that it does not know.
        bytes: u64,
    },
    /// The map has no digests.
    #[error("has no range with a checksum, so nothing would be compared")]
    Nothing,
    /// The map cannot be read, or is damaged.
    #[error(transparent)]
    Map(blkmap::Error),
    /// The destination is no longer as large as the copy.
    #[error(transparent)]
    Part(PartError),
    /// The destination cannot be compared.
    #[error(transparent)]
    Destination(blksum::Error),
    /// Some of the destination cannot be read.
    #[error(transparent)]
    Unreadable(blkimage::Error),
}

impl NotExpected {
    /// Returns whether it is the map that is unfit, and not the content that differs or cannot be read.
    pub fn is_of_map(&self) -> bool {
        matches!(self, Self::Map(_) | Self::Unknown { .. } | Self::Nothing)
    }
}

impl ExpectedMap {
    /// Takes a map, which must know all blocks.
    pub fn of_map(map: Map) -> Self {
        Self(Digests::Blocks(Box::new(map)))
    }

    /// Takes the file of a bmap, all of which is read. Blocks in none of its ranges are not compared.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read, is damaged, or has no range.
    pub fn of_bmap(file: File) -> Result<Self, NotExpected> {
        let bytes = Bmap::open(&file).and_then(|bmap| bytes_in_ranges(&bmap));
        match bytes.map_err(NotExpected::Map)? {
            0 => Err(NotExpected::Nothing),
            bytes => Ok(Self(Digests::Ranges(file, bytes))),
        }
    }

    /// Returns the number of bytes that are compared.
    pub fn bytes(&self) -> u64 {
        match &self.0 {
            Digests::Blocks(map) => map.commit().image_size(),
            Digests::Ranges(_, bytes) => *bytes,
        }
    }

    /// Fails unless the map is of a content of `size` bytes.
    ///
    /// # Errors
    ///
    /// Fails also if the map cannot be read.
    pub fn check_size(&self, size: u64) -> Result<(), NotExpected> {
        let mapped = match &self.0 {
            Digests::Blocks(map) => map.commit().image_size(),
            Digests::Ranges(file, _) => bmap(file)?.image_size(),
        };
        if mapped == size { Ok(()) } else { Err(NotExpected::Size { size, mapped }) }
    }

    /// Compares the first `size` bytes of a destination, which was read back.
    ///
    /// # Errors
    ///
    /// Fails unless they are what the map says, and if one of the two cannot be read.
    pub fn check(
        &self,
        destination: Image,
        size: u64,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<(), NotExpected> {
        self.check_size(size)?;
        let part = Part::Range { offset: 0, length: Some(size) };
        let copy = Selected::new(Arc::new(destination), Some(part)).map_err(NotExpected::Part)?;
        let mut found = Found::default();
        let mut take = |difference| found.push(difference);
        let compared = match &self.0 {
            Digests::Blocks(map) => verify(map, &copy, &mut take, tuning, progress),
            Digests::Ranges(file, _) => {
                let bmap = bmap(file)?;
                let pairing = RangePairing::new(bmap.algorithm(), bmap.block_size(), size, &copy);
                let ranges = bmap.ranges().map_err(NotExpected::Map)?;
                pairing.and_then(|it| it.differences(ranges, &mut take, tuning, progress))
            }
        };
        // Passes over ranges, which may be side by side, each count on from what was done then.
        progress.set_total(self.bytes());
        let unreadable = compared.map_err(|error| match error {
            blksum::Error::Map(error) => NotExpected::Map(error),
            error => NotExpected::Destination(error),
        })?;
        if let Some(unreadable) = unreadable.into_iter().next() {
            return Err(NotExpected::Unreadable(unreadable.error));
        }
        match (found.first, &self.0) {
            (Some(first), _) => Err(NotExpected::Differs { bytes: found.differing, first }),
            (None, Digests::Blocks(_)) if found.unknown > 0 => {
                Err(NotExpected::Unknown { bytes: found.unknown })
            }
            (None, _) => Ok(()),
        }
    }
}

fn bmap(file: &File) -> Result<Bmap<'_>, NotExpected> {
    Bmap::open(file).map_err(NotExpected::Map)
}

fn bytes_in_ranges(bmap: &Bmap<'_>) -> Result<u64, blkmap::Error> {
    let at = |block: u64| block.saturating_mul(bmap.block_size().into()).min(bmap.image_size());
    bmap.ranges()?.try_fold(0, |sum: u64, range| {
        let DigestedRange { first, count, .. } = range?;
        Ok(sum.saturating_add(at(first.saturating_add(count)) - at(first)))
    })
}

/// Sums of what was found, in bytes.
#[derive(Default)]
struct Found {
    /// Offset of the first difference.
    first: Option<u64>,
    differing: u64,
    unknown: u64,
}

impl Found {
    fn push(&mut self, found: Difference) {
        match found.relation {
            Relation::Unknown => self.unknown += found.length,
            _ => {
                self.first.get_or_insert(found.offset);
                self.differing += found.length;
            }
        }
    }
}
