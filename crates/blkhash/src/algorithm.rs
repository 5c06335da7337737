//! Digest algorithms: names, sizes and properties, from the rows of the table.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::table::algorithms;

/// Strength of a digest against accidents and attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strength {
    /// No protection.
    None,
    /// Detects accidental changes. An attacker can easily make other content with the same digest.
    ErrorDetection,
    /// Designed as a cryptographic hash, but collisions are known.
    Broken,
    /// Detects accidental changes and attacks.
    Cryptographic,
    /// Resists attackers only with a secret key. The key used here is all zeros.
    Keyed,
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::ErrorDetection => "error detection",
            Self::Broken => "broken",
            Self::Cryptographic => "cryptographic",
            Self::Keyed => "keyed",
        })
    }
}

/// The bit of each byte that enters the register of a CRC first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOrder {
    /// The lowest bit, in a reflected CRC.
    LowestFirst,
    /// The highest bit.
    HighestFirst,
}

/// The properties of an [`Algorithm`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Properties {
    /// The name, as in OpenSSL and blkhash.
    pub name: &'static str,
    /// Other names that are accepted.
    pub aliases: &'static [&'static str],
    /// Length of the digest in bytes.
    pub digest_size: usize,
    /// The protection that the digest gives.
    pub strength: Strength,
    /// The NIST standard that defines the algorithm.
    pub fips: Option<&'static str>,
    /// The bit order, if the algorithm is a CRC.
    pub bit_order: Option<BitOrder>,
    /// Whether hashing one input works on several parts of it at once, so that it hardly waits for
    /// memory.
    pub hides_latency: bool,
}

impl Properties {
    /// Returns a row of the table with default values for the optional fields.
    const fn new(
        name: &'static str,
        aliases: &'static [&'static str],
        digest_size: usize,
        strength: Strength,
    ) -> Self {
        Self {
            name,
            aliases,
            digest_size,
            strength,
            fips: None,
            bit_order: None,
            hides_latency: false,
        }
    }

    /// Returns whether a digest fits into the 32 bytes that btrfs and other file systems reserve
    /// for it.
    pub const fn fits_32_bytes(&self) -> bool {
        self.digest_size <= 32
    }
}

/// Defines [`Algorithm`] with one variant for each row of the table.
macro_rules! define {
    ($(
        $(#[$doc:meta])*
        $algorithm:ident: $name:literal $(| $alias:literal)*, $size:literal bytes, $strength:ident
            { $($property:ident: $value:expr),* }
            $from:ident($($implementations:tt)*) => $hash:ty: $start:expr;
    )*) => {
        /// A digest algorithm.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Algorithm {
            $($(#[$doc])* $algorithm,)*
        }

        impl Algorithm {
            /// All algorithms, from no hash to the strongest.
            pub const ALL: &'static [Self] = &[$(Self::$algorithm,)*];

            /// Returns the properties from the algorithm's row of the table.
            pub const fn properties(self) -> Properties {
                match self {
                    $(Self::$algorithm => {
                        #[allow(unused_mut, reason = "most rows have nothing to add")]
                        let mut row =
                            Properties::new($name, &[$($alias),*], $size, Strength::$strength);
                        $(row.$property = $value;)*
                        row
                    })*
                }
            }
        }

        $(const _: () = {
            let size: usize = $size;
            assert!(size <= MAX_DIGEST_SIZE, "a digest is longer than MAX_DIGEST_SIZE");
        };)*
    };
}

algorithms!(define);

impl Algorithm {
    /// Returns the name, as in OpenSSL and blkhash.
    pub const fn name(self) -> &'static str {
        self.properties().name
    }

    /// Returns the length of the digest in bytes, at most [`MAX_DIGEST_SIZE`].
    pub const fn digest_size(self) -> usize {
        self.properties().digest_size
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    /// Finds an algorithm by name or alias. Case is ignored, and `_` stands for `-`, as in Python.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wanted = text.to_ascii_lowercase().replace('_', "-");
        if wanted == "blake2b" {
            return Err(Error::AmbiguousAlgorithm);
        }
        Self::ALL
            .iter()
            .copied()
            .find(|algorithm| {
                let known = algorithm.properties();
                known.name == wanted || known.aliases.contains(&wanted.as_str())
            })
            .ok_or_else(|| Error::UnknownAlgorithm(text.to_owned()))
    }
}

/// Length of the longest digest in bytes.
pub const MAX_DIGEST_SIZE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_alias_finds_its_algorithm_and_no_other() {
        let mut seen = std::collections::HashSet::new();
        for &algorithm in Algorithm::ALL {
            let known = algorithm.properties();
            for name in known.aliases.iter().chain([&known.name]) {
                assert!(seen.insert(*name), "{name} names two algorithms");
                assert_eq!(name.parse::<Algorithm>().unwrap(), algorithm);
                assert_eq!(name.to_uppercase().parse::<Algorithm>().unwrap(), algorithm);
            }
        }
        assert_eq!("sha3_256".parse::<Algorithm>().unwrap(), Algorithm::Sha3_256);
    }

    #[test]
    fn bare_blake2b_is_refused_naming_both() {
        let message = "blake2b".parse::<Algorithm>().unwrap_err().to_string();
        assert!(message.contains("blake2b512") && message.contains("blake2b256"), "{message}");
    }
}
