//! Values that people hold, and what they can be checksums of.
//!
//! A value without a tag does not record how it was computed. [`Value`] reads the forms in which values are
//! written, [`Search`] lists what a value of its length can be, likeliest first, and [`Shape`] tells whether a
//! match may be that of other content. docs/check-file.md has the argument why a match proves as much as one of
//! parameters that are known.

mod digests;
mod find;
mod search;
mod shape;
mod value;

pub use self::digests::{digests_of_size, untried_of_size};
pub use self::find::{Found, find};
pub use self::search::{Pass, Search, Subject, part_size};
pub use self::shape::{Doubt, Observed, Shape};
pub use self::value::{UnknownValue, Value};
