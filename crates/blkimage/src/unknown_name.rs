//! The error for an unknown name.

use std::fmt;

/// The error for a string that is not the name of a [`Format`](crate::Format), [`Holes`](crate::Holes),
/// [`Cache`](crate::Cache), [`Follow`](crate::Follow), [`VpcSize`](crate::VpcSize) or
/// [`Reader`](crate::Reader).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownName(&'static str);

impl UnknownName {
    /// No format has the name.
    pub(crate) const FORMAT: Self = Self("image format");

    /// No value of the option has the name.
    pub(crate) const OPTION: Self = Self("name");
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {}", self.0)
    }
}

impl std::error::Error for UnknownName {}
