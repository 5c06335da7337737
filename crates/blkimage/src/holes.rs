//! Whether holes that a file system reports are trusted.

use crate::names;

/// Treatment of the holes that a file system reports in the files of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Holes {
    /// Holes are zeros and are not read.
    #[default]
    Trust,
    /// Holes are read like data. A hole that is not zero is an error.
    Verify,
    /// Holes are not queried. All content is read.
    Ignore,
}

names!(Holes { Trust = "trust", Verify = "verify", Ignore = "ignore" });
