//! Names of the values of options, and the error for an unknown one.

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

/// Gives the values of an enum their names.
macro_rules! names {
    ($type:ident { $($value:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$value),+];

            /// Returns the name of the value, which [`FromStr`](std::str::FromStr) takes.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name),+
                }
            }

            /// Returns the names of all values.
            pub fn names() -> Vec<&'static str> {
                Self::ALL.iter().map(|value| value.name()).collect()
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::UnknownName;

            fn from_str(name: &str) -> Result<Self, $crate::UnknownName> {
                let known = Self::ALL.iter().find(|value| value.name() == name);
                known.copied().ok_or($crate::UnknownName::OPTION)
            }
        }
    };
}
pub(crate) use names;
