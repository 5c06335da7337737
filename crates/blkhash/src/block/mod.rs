//! Blocks and their digests.

mod comparison;
mod digests;
mod leaf;
mod pieces;

pub use self::comparison::Comparison;
pub use self::digests::{BlockDigests, Run};
pub use self::leaf::Leaf;
pub use self::pieces::BlockPieces;
