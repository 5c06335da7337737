//! Names of the values of enums, and the error for an unknown one.

use std::fmt;

/// The error for a text that is none of some names, such as the names of [`Format`](crate::Format) or
/// [`Holes`](crate::Holes). `{}` says what is unknown, and `{:#}` also which names there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownName {
    noun: &'static str,
    known: &'static [&'static str],
}

impl UnknownName {
    /// No format has the name.
    pub(crate) const FORMAT: Self = Self::new("image format", &[]);

    /// Creates the error. `noun` is what the names are of.
    #[doc(hidden)]
    pub const fn new(noun: &'static str, known: &'static [&'static str]) -> Self {
        Self { noun, known }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {}", self.noun)?;
        match f.alternate() && !self.known.is_empty() {
            true => write!(f, ": use {}", one_of(self.known)),
            false => Ok(()),
        }
    }
}

impl std::error::Error for UnknownName {}

/// Formats a list as `a, b or c`.
pub(crate) fn one_of(words: &[impl AsRef<str>]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}

/// Gives the values of an enum their names, which are of `noun`.
#[doc(hidden)]
#[macro_export]
macro_rules! names {
    ($type:ident { $($values:tt)+ }) => {
        $crate::names!($type, "name", { $($values)+ });
    };
    ($type:ident, $noun:literal, { $($value:ident = $name:literal),+ $(,)? }) => {
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
                known.copied().ok_or($crate::UnknownName::new($noun, &[$($name),+]))
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{Cache, Format};

    #[test]
    fn errors_say_which_names_there_are() {
        let error = "maybe".parse::<Cache>().unwrap_err();
        assert_eq!(error.to_string(), "unknown name");
        assert_eq!(format!("{error:#}"), "unknown name: use auto, yes or no");
        let error = "iso".parse::<Format>().unwrap_err();
        assert_eq!(format!("{error:#}"), "unknown image format");
    }
}
