/// Reason why there is no checksum or comparison.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The image could not be read, or changed while it was read.
    #[error(transparent)]
    Image(#[from] blkimage::Error),
    /// The image's extents do not add up, because of a defect of the [`blkimage::Source`].
    #[error("the extent at {offset} has a length of {length} where at most {limit} bytes are left")]
    Extent {
        /// Offset of the extent in bytes.
        offset: u64,
        /// Length that the extent claims, in bytes.
        length: u64,
        /// Maximum length of the extent in bytes.
        limit: u64,
    },
    /// There are more zeros than [`Tuning::max_zeros`](crate::Tuning::max_zeros) allows.
    #[error("has more than {limit} bytes of zeros that it does not store")]
    Zeros {
        /// Maximum number of bytes of zeros.
        limit: u64,
    },
    /// The requested implementation cannot run here, or the construction is not defined for the length
    /// of the content.
    #[error(transparent)]
    Hash(#[from] blkhash::Error),
    /// The image does not have the part that is read.
    #[error(transparent)]
    Part(#[from] crate::PartError),
    /// A map could not be read or written.
    #[error(transparent)]
    Map(#[from] blkmap::Error),
    /// A block changed, and nothing calls it changed.
    #[error("{length} bytes at {offset} changed, and the changes do not include them")]
    Missed {
        /// Offset of the block in bytes.
        offset: u64,
        /// Length of the block in bytes.
        length: u64,
    },
    /// No file system has files of both images and reports which extents they share.
    #[error(
        "extents shared with the older image are unknown: both must be on one btrfs or XFS file system, and their holes trusted"
    )]
    NothingShared,
    /// There are more changes than a list can have.
    #[error("has more than {limit} changed extents")]
    ManyChanges {
        /// Maximum number of extents.
        limit: usize,
    },
    /// A map is of another part of the image.
    #[error(transparent)]
    OtherPart(#[from] crate::map::OtherPart),
    /// A tree of dm-verity or fs-verity could not be read or written, or belongs to other data.
    #[error(transparent)]
    Verity(#[from] blkverity::Error),
    /// A stream could not be read.
    #[error(transparent)]
    Stream(std::io::Error),
    /// A sink of block digests or comparisons failed.
    #[error(transparent)]
    Sink(blkhash::SinkError),
    /// [`Progress::cancel`](crate::Progress::cancel) was called.
    #[error("cancelled")]
    Cancelled,
    /// Some of the content did not arrive, because of a defect of this crate.
    #[error("the result is incomplete")]
    Incomplete,
}
