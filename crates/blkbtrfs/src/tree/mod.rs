//! Trees: their keys, their blocks, and how to find an item.
//!
//! [`reference`] says what leads to a tree block, [`block`] knows what one looks like and whether it
//! is the one that was asked for, [`cursor`] finds items in trees. [`cache`] keeps what was read last.

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
