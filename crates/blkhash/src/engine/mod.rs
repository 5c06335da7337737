//! What makes a checksum fast and never changes its value: blocks hashed side by side by several
//! threads, their digests brought back into order.

mod blocks;
mod ordered;
mod pieces;
mod pool;
mod segments;

pub(crate) use self::blocks::Run;
pub use self::blocks::{Batch, BlockDigests, BlockHasher};
pub use self::ordered::{Abandoned, Ordered};
pub use self::pieces::BlockPieces;
pub(crate) use self::pool::{Chunk, Pool};
pub use self::segments::SegmentHasher;
