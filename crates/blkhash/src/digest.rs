//! The value of a hash.

use std::fmt;
use std::str::FromStr;

use crate::algorithm::MAX_DIGEST_SIZE;
use crate::hex;

/// The value of a hash: up to 64 bytes, formatted and parsed as hexadecimal.
///
/// ```
/// use blkhash::Digest;
///
/// let digest: Digest = "CBF43926".parse()?;
/// assert_eq!(digest.as_bytes(), [0xcb, 0xf4, 0x39, 0x26]);
/// assert_eq!(digest.to_string(), "cbf43926");
/// # Ok::<(), blkhash::ParseDigestError>(())
/// ```
///
/// With the feature `serde` it is serialized as a string of hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest {
    bytes: [u8; MAX_DIGEST_SIZE],
    length: u8,
}

/// The error of parsing a [`Digest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseDigestError {
    /// The number of digits is odd.
    #[error("a digest has an even number of digits")]
    OddLength,
    /// The text is longer than the longest digest.
    #[error("a digest has at most {MAX_DIGEST_SIZE} bytes")]
    TooLong,
    /// The byte at this offset is not a hexadecimal digit.
    #[error("no hexadecimal digit at offset {0}")]
    InvalidDigit(usize),
}

impl Digest {
    /// Creates a digest of `length` zero bytes, to be overwritten.
    pub(crate) fn zeroed(length: usize) -> Self {
        assert!(length <= MAX_DIGEST_SIZE, "a digest has at most {MAX_DIGEST_SIZE} bytes");
        Self { bytes: [0; MAX_DIGEST_SIZE], length: length as u8 }
    }

    /// Returns the bytes, in the order of their hexadecimal digits.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    pub(crate) fn as_mut_bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[..usize::from(self.length)]
    }
}

impl TryFrom<&[u8]> for Digest {
    type Error = ParseDigestError;

    /// Takes up to 64 bytes.
    fn try_from(bytes: &[u8]) -> Result<Self, ParseDigestError> {
        if bytes.len() > MAX_DIGEST_SIZE {
            return Err(ParseDigestError::TooLong);
        }
        let mut digest = Self::zeroed(bytes.len());
        digest.as_mut_bytes().copy_from_slice(bytes);
        Ok(digest)
    }
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Display for Digest {
    /// Writes lower case hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::encode(self.as_bytes(), f)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = ParseDigestError;

    /// Parses up to 64 bytes of hexadecimal digits in any case.
    fn from_str(text: &str) -> Result<Self, ParseDigestError> {
        if text.len() > 2 * MAX_DIGEST_SIZE {
            return Err(ParseDigestError::TooLong);
        }
        if !text.len().is_multiple_of(2) {
            return Err(ParseDigestError::OddLength);
        }
        let mut digest = Self::zeroed(text.len() / 2);
        hex::decode(text, digest.as_mut_bytes()).map_err(ParseDigestError::InvalidDigit)?;
        Ok(digest)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Hexadecimal;

        impl serde::de::Visitor<'_> for Hexadecimal {
            type Value = Digest;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a digest in hexadecimal")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Digest, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Hexadecimal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, Digester};

    #[test]
    fn every_digest_round_trips() {
        for &algorithm in Algorithm::ALL {
            let digest = Digester::new(algorithm).digest(b"content");
            let text = digest.to_string();
            assert_eq!(text.parse(), Ok(digest), "{algorithm}");
            assert_eq!(text.to_uppercase().parse(), Ok(digest), "{algorithm}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let parse = |text: &str| text.parse::<Digest>().unwrap_err();
        assert_eq!(parse("abc"), ParseDigestError::OddLength);
        assert_eq!(parse(&"00".repeat(65)), ParseDigestError::TooLong);
        for (text, offset) in [("0g", 1), ("+1", 0), (" 1", 0), ("12x4", 2), ("00é", 2)] {
            assert_eq!(parse(text), ParseDigestError::InvalidDigit(offset), "{text}");
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn serializes_as_hexadecimal() {
        let digest: Digest = "cbf43926".parse().unwrap();
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(json, "\"cbf43926\"");
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        // A reader cannot lend text, so the visitor gets a temporary string.
        assert_eq!(serde_json::from_reader::<_, Digest>(json.as_bytes()).unwrap(), digest);
        assert!(serde_json::from_str::<Digest>("\"cbf4392\"").is_err());
        assert!(serde_json::from_str::<Digest>("7").is_err());
    }
}
