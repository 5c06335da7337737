//! Blocks and their digests: what everything that is made of an image stands on.

mod digests;
mod leaf;
mod pieces;

pub use self::digests::{BlockDigests, Run};
pub use self::leaf::Leaf;
pub use self::pieces::BlockPieces;
