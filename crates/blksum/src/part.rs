//! The part of an image that is hashed.

use blkimage::partition::{self, NoPartition};
use blkimage::{Image, Slice, Source};

/// A part of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A partition, by its number.
    Partition(u32),
    /// A range of bytes.
    Range {
        /// Offset of the first byte.
        offset: u64,
        /// Length in bytes. `None` extends to the end of the image.
        length: Option<u64>,
    },
}

impl Part {
    /// Returns the content of the part.
    ///
    /// # Errors
    ///
    /// Fails if the image does not have all of it.
    pub fn of(self, image: &Image) -> Result<Slice<&Image>, PartError> {
        let (offset, length) = self.range(image)?;
        Ok(Slice::new(image, offset, length).expect("the image has the part"))
    }

    /// Returns the offset and the length of the part.
    ///
    /// # Errors
    ///
    /// Fails if the image does not have all of it.
    pub fn range(self, image: &Image) -> Result<(u64, u64), PartError> {
        let size = image.size();
        let (what, offset, length) = match self {
            Self::Partition(number) => {
                let partition = partition::find(image, number)?;
                (format!("partition {number}"), partition.offset, partition.length)
            }
            Self::Range { offset, length } => {
                let length = length.unwrap_or(size.saturating_sub(offset));
                (format!("the range of {length} bytes"), offset, length)
            }
        };
        if offset.checked_add(length).is_none_or(|end| end > size) {
            return Err(PartError::Beyond { what, offset, size });
        }
        Ok((offset, length))
    }

    /// Returns the number of a partition.
    pub fn partition(self) -> Option<u32> {
        match self {
            Self::Partition(number) => Some(number),
            Self::Range { .. } => None,
        }
    }

    /// Names the kind of part, for messages about streams, which have no parts.
    pub fn what(self) -> &'static str {
        match self {
            Self::Partition(_) => "partitions",
            Self::Range { .. } => "offsets",
        }
    }
}

/// The reason why an image does not have all of a part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// It has no such partition.
    #[error(transparent)]
    Partition(#[from] NoPartition),
    /// It ends before the end of the part.
    #[error("{what} at {offset} reaches past the end of the image at {size}")]
    Beyond {
        /// Names the part.
        what: String,
        /// Offset of the part in bytes.
        offset: u64,
        /// Size of the image in bytes.
        size: u64,
    },
}
