/// Why there is no checksum.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The image could not be read, or changed while it was.
    #[error(transparent)]
    Image(#[from] blkimage::Error),
    /// The image's extents do not add up: a defect of the [`blkimage::Source`].
    #[error("the extent at {offset} has a length of {length} where at most {limit} bytes are left")]
    Extent {
        /// Where it begins.
        offset: u64,
        /// How long it claims to be.
        length: u64,
        /// How long it may be.
        limit: u64,
    },
    /// There are more zeros than [`Tuning::max_zeros`](crate::Tuning::max_zeros) allows.
    #[error("has more than {limit} bytes of zeros that it does not store")]
    Zeros {
        /// How many there may be.
        limit: u64,
    },
    /// The implementation that was asked for cannot run here.
    #[error(transparent)]
    Implementation(#[from] blkhash::Error),
    /// A stream could not be read.
    #[error(transparent)]
    Stream(std::io::Error),
    /// A sink of block digests takes no more.
    #[error(transparent)]
    Sink(blkhash::SinkError),
    /// [`Progress::cancel`](crate::Progress::cancel) was called.
    #[error("cancelled")]
    Cancelled,
    /// Some of the content did not arrive: a defect of this crate.
    #[error("the checksum is incomplete")]
    Incomplete,
}
