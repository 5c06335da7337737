//! The part of an image that is hashed.

use blkimage::partition::{self, Partition};
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
    /// Returns the part of an image. The error is the reason why the image does not have all of it.
    pub fn of(self, image: &Image) -> Result<Slice<&Image>, String> {
        let (offset, length) = self.range(image)?;
        Slice::new(image, offset, length).ok_or_else(|| format!("has nothing at {offset}"))
    }

    /// Returns the offset and the length of the part, all of which the image has.
    pub fn range(self, image: &Image) -> Result<(u64, u64), String> {
        let size = image.size();
        let (what, offset, length) = match self {
            Self::Partition(number) => {
                let Partition { offset, length, .. } = find(image, number)?;
                (format!("partition {number}"), offset, length)
            }
            Self::Range { offset, length } => {
                let length = length.unwrap_or(size.saturating_sub(offset));
                (format!("the range of {length} bytes"), offset, length)
            }
        };
        if offset.checked_add(length).is_none_or(|end| end > size) {
            return Err(format!("{what} at {offset} reaches past the end of the image at {size}"));
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

fn find(image: &Image, number: u32) -> Result<Partition, String> {
    let table = partition::table(image).map_err(|error| error.to_string())?;
    if let Some(found) = table.find(number) {
        return Ok(*found);
    }
    let numbers = table.numbers();
    if let Some(lost) = table.lost {
        return Err(format!("no partition {number}: {lost}"));
    }
    if numbers.is_empty() {
        return Err("it has no partition table".to_owned());
    }
    Err(format!("no partition {number}: it has {numbers}"))
}
