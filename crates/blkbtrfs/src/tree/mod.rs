//! Trees: their keys, their blocks and the search for items.
//!
//! [`reference`] describes the references to tree blocks. [`block`] parses a block and checks that
//! it is the expected one. [`cursor`] finds items in trees. [`cache`] keeps recently read blocks.

pub(crate) mod block;
mod cache;
mod cursor;
pub(crate) mod key;
pub(crate) mod object;
mod reference;

pub use block::BlockDefect;
pub(crate) use block::TreeBlock;
pub(crate) use cache::BlockCache;
pub(crate) use cursor::{Blocks, Cursor};
pub(crate) use key::Key;
pub use reference::Parent;
pub(crate) use reference::{ANY_TREE, Expected, MAX_LEVEL, TreeRoot, root_block};
