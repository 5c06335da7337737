//! Identifiers as stored on disk and as written in parent locators.

use std::fmt;

/// A GUID. The first three fields are little-endian on disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Guid(pub [u8; 16]);

impl Guid {
    pub const ZERO: Self = Self([0; 16]);

    /// Creates a constant from the number that the text form shows.
    pub const fn new(text: u128) -> Self {
        let b = text.to_be_bytes();
        Self([
            b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13],
            b[14], b[15],
        ])
    }

    /// Parses the text form, in upper or lower case, with or without braces.
    pub fn parse(text: &str) -> Option<Self> {
        let bare = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
        let is_dash = |at| matches!(at, 8 | 13 | 18 | 23);
        if bare.len() != 36 {
            return None;
        }
        let mut number = 0;
        for (at, byte) in bare.bytes().enumerate() {
            if is_dash(at) {
                if byte != b'-' {
                    return None;
                }
            } else {
                number = number << 4 | u128::from(char::from(byte).to_digit(16)?);
            }
        }
        Some(Self::new(number))
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The swaps of the constructor are their own inverse.
        let text =
            format!("{:032x}", u128::from_be_bytes(Self::new(u128::from_be_bytes(self.0)).0));
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
        f.write_str(&parts.map(|part| &text[part]).join("-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes() {
        let guid = Guid([
            0x66, 0x77, 0xc2, 0x2d, 0x23, 0xf6, 0x00, 0x42, 0x9d, 0x64, 0x11, 0x5e, 0x9b, 0xfd,
            0x4a, 8,
        ]);
        let text = "2dc27766-f623-4200-9d64-115e9bfd4a08";
        assert_eq!(guid.to_string(), text);
        for form in [text.to_owned(), text.to_uppercase(), format!("{{{text}}}")] {
            assert!(Guid::parse(&form) == Some(guid), "{form}");
        }
        for wrong in
            ["", "{}", &text[1..], &format!("{{{text}"), &text.replace('-', "0"), &"é".repeat(18)]
        {
            assert!(Guid::parse(wrong).is_none(), "{wrong}");
        }
        for at in 0..36 {
            let mut wrong = text.to_owned();
            wrong.replace_range(at..=at, "x");
            assert!(Guid::parse(&wrong).is_none(), "{wrong}");
        }
    }
}
