//! Parts of a program that hashes on its own threads. They make a checksum fast and never change its
//! value.
//!
//! Threads hash blocks in a [`Batch`] and bring the digests into order with [`Ordered`], which feeds
//! any [`Sink`](crate::Sink). The [`Accumulator`] is the sink that makes a checksum. For
//! [`Construction::Linear`](crate::Construction::Linear), a [`SegmentHasher`] and a [`Join`] take
//! their places if the algorithm allows it.

mod accumulator;
mod batch;
mod ordered;
mod pool;
mod queue;
mod share;
mod threads;

pub use self::accumulator::Accumulator;
pub use self::batch::Batch;
pub use self::ordered::{Ordered, Reuse, Stopped, Turn};
pub(crate) use self::pool::Pool;
pub(crate) use self::queue::{Buffer, Chunk};
pub use self::share::Shares;
pub use crate::algo::Measurement;
pub use crate::block::BlockPieces;
pub use crate::segments::{Join, SegmentHasher, Segments};
