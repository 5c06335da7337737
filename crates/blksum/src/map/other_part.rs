//! Maps of another part of an image.

/// The reason why a map and an image, or two maps, are not of the same part. The text is about the map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OtherPart {
    /// The map is of this partition, and the image is whole.
    #[error("is the map of partition {0}")]
    Partition(u32),
    /// The map has the size of the whole image, and the image is this partition.
    #[error("has the size of the whole image, not of partition {0}")]
    WholeImage(u32),
    /// The map is of a whole image without this partition.
    #[error("is of a whole image without partition {0}")]
    Missing(u32),
    /// The map has the partition at another place.
    #[error(
        "has partition {number} at {} with {} bytes, and the image has it at {} with {} bytes",
        mapped.0, mapped.1, found.0, found.1
    )]
    Moved {
        /// Number of the partition.
        number: u32,
        /// Offset and length in the map, in bytes.
        mapped: (u64, u64),
        /// Offset and length in the image, in bytes.
        found: (u64, u64),
    },
    /// The map is of the whole image, and a block of it is in the partition only in part.
    #[error(
        "is of the whole image, and partition {number} begins at {offset}, within a block of {block_size} bytes"
    )]
    Unaligned {
        /// Number of the partition.
        number: u32,
        /// Offset of the partition in bytes.
        offset: u64,
        /// Size of a block in bytes.
        block_size: u64,
    },
    /// The map ends before the end of the partition.
    #[error("ends before partition {0}")]
    Ends(u32),
    /// One map is of a partition, and the other one of a whole image.
    #[error("is the map of {}, and the other one of {}", part_name(*.0), part_name(*.1))]
    Maps(Option<u32>, Option<u32>),
}

fn part_name(partition: Option<u32>) -> String {
    partition.map_or_else(|| "the whole image".to_owned(), |number| format!("partition {number}"))
}
