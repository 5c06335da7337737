//! Makes a checksum fast and never changes its value. Blocks are hashed side by side by several
//! threads, and their digests are brought back into order.

mod accumulator;
mod batch;
mod ordered;
mod pool;
mod queue;
mod threads;

pub use self::accumulator::Accumulator;
pub use self::batch::Batch;
pub use self::ordered::{Ordered, Reuse, Stopped, Turn};
pub(crate) use self::pool::Pool;
pub(crate) use self::queue::{Buffer, Chunk};
