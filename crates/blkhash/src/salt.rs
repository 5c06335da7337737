//! Salts, which some constructions hash before each block.

use std::fmt;
use std::str::FromStr;

use crate::hex;

/// A salt: up to 256 bytes, formatted and parsed as hexadecimal.
///
/// ```
/// use blkhash::Salt;
///
/// let salt: Salt = "00ff".parse()?;
/// assert_eq!(salt.as_bytes(), [0x00, 0xff]);
/// # Ok::<(), blkhash::InvalidSalt>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Salt {
    bytes: [u8; Self::MAX],
    length: u16,
}

/// The error for bytes or a text that is not a [`Salt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSalt {
    /// The number of digits is odd.
    #[error("a salt has an even number of digits")]
    OddLength,
    /// The salt is longer than [`Salt::MAX`].
    #[error("a salt has at most {} bytes", Salt::MAX)]
    TooLong,
    /// The byte at this offset is not a hexadecimal digit.
    #[error("no hexadecimal digit at offset {0}")]
    InvalidDigit(usize),
}

impl Salt {
    /// Maximum length in bytes, the limit of dm-verity.
    pub const MAX: usize = 256;

    /// No salt.
    pub const EMPTY: Self = Self { bytes: [0; Self::MAX], length: 0 };

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Returns whether there is no salt.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl TryFrom<&[u8]> for Salt {
    type Error = InvalidSalt;

    fn try_from(bytes: &[u8]) -> Result<Self, InvalidSalt> {
        let mut salt = Self::EMPTY;
        salt.bytes.get_mut(..bytes.len()).ok_or(InvalidSalt::TooLong)?.copy_from_slice(bytes);
        salt.length = bytes.len() as u16;
        Ok(salt)
    }
}

impl FromStr for Salt {
    type Err = InvalidSalt;

    /// Parses up to 256 bytes of hexadecimal digits in any case.
    fn from_str(text: &str) -> Result<Self, InvalidSalt> {
        let mut salt = Self::EMPTY;
        if !text.len().is_multiple_of(2) {
            return Err(InvalidSalt::OddLength);
        }
        let bytes = salt.bytes.get_mut(..text.len() / 2).ok_or(InvalidSalt::TooLong)?;
        hex::decode(text, bytes).map_err(InvalidSalt::InvalidDigit)?;
        salt.length = bytes.len() as u16;
        Ok(salt)
    }
}

impl Default for Salt {
    /// Returns [`Salt::EMPTY`].
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Display for Salt {
    /// Writes lower case hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::encode(self.as_bytes(), f)
    }
}

impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Salt({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn salts_round_trip() {
        for text in ["", "00", "0123456789abcdef", &"5a".repeat(256)] {
            let salt: Salt = text.parse().unwrap();
            assert_eq!(salt.to_string(), text);
            assert_eq!(Salt::try_from(salt.as_bytes()), Ok(salt));
            assert_eq!(text.to_uppercase().parse(), Ok(salt));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let parse = |text: &str| text.parse::<Salt>().unwrap_err();
        assert_eq!(parse("abc"), InvalidSalt::OddLength);
        assert_eq!(parse(&"00".repeat(257)), InvalidSalt::TooLong);
        assert_eq!(Salt::try_from(&[0; 257][..]), Err(InvalidSalt::TooLong));
        for (text, offset) in [("0g", 1), ("+1", 0), (" 1", 0), ("00é", 2)] {
            assert_eq!(parse(text), InvalidSalt::InvalidDigit(offset), "{text}");
        }
    }
}
