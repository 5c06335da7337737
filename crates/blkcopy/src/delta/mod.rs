//! Deltas: what turns the content of a map into the content of an image, as a stream. docs/reference/delta-format.md
//! specifies it.
//!
//! [`send_delta`] writes the blocks of an image that differ from a map, and [`Apply`] writes them to a destination that has the
//! content of the map. Nothing is written from a record whose digest fails, and no block is overwritten that is neither
//! in the map nor in the image.

mod apply;
mod differing;
mod format;
mod send;

pub use self::apply::Apply;
pub(crate) use self::differing::Differing;
pub(crate) use self::format::{Header, Kind, Record};
pub use self::send::{Sent, send_delta};
