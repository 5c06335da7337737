//! What makes a checksum fast and never changes its value: blocks hashed side by side by several
//! threads, their digests brought back into order.

mod blocks;
mod ordered;
mod pieces;
mod pool;
mod queue;
mod segments;
pub(crate) mod threads;

pub(crate) use self::blocks::Run;
pub use self::blocks::{Batch, BlockDigests, BlockHasher};
pub use self::ordered::{Abandoned, Ordered};
pub use self::pieces::BlockPieces;
pub(crate) use self::pool::Pool;
pub(crate) use self::queue::{Buffer, Chunk};
pub use self::segments::SegmentHasher;
