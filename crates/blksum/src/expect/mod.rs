//! Values that people hold, and what they can be checksums of.
//!
//! A value without a tag does not record how it was computed. [`Value`] reads the forms in which values are
//! written, [`Search`] lists what a value of its length can be, likeliest first, and [`Shape`] tells whether a
//! match may be of other content. [`find`] tries the list on an image. A caller that reads in another way has
//! [`Candidates`], which returns one pass after the other. docs/reference/check-file.md has the argument why a match proves as
//! much as one of parameters that are known.

mod candidates;
mod digests;
mod find;
mod limits;
mod search;
mod shape;
mod value;

pub use self::candidates::{Candidates, Found, Match, Reading};
pub use self::digests::{digests_of_size, untried_of_size};
pub use self::find::{FileBytes, find};
pub use self::limits::{Amount, Limits, Untried};
pub use self::search::{Pass, Search, Subject, part_size};
pub use self::shape::{Doubt, Observed, Shape};
pub use self::value::{UnknownValue, Value};
