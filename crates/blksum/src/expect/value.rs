//! The forms in which values are written.

use std::str::FromStr;

use blkhash::Algorithm;

use super::digests::digests_of_size;
use crate::{Encoding, decode_base64};

/// A checksum without its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The checksum, as long as some digest.
    pub digest: Vec<u8>,
    /// Algorithm that the text names.
    pub algorithm: Option<Algorithm>,
    /// Number of parts of an object in S3, whose digests were hashed.
    pub parts: Option<u64>,
}

/// Error for a text that is not a [`Value`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownValue {
    /// Nothing.
    #[error("is empty")]
    Empty,
    /// An odd number of hexadecimal digits.
    #[error("has {0} hexadecimal digits, and every byte has two")]
    OddDigits(usize),
    /// Anything else.
    #[error("is no checksum, which is HEX, BASE64, ALGORITHM:HEX or a line of a check file")]
    Text,
    /// No digest has this many bytes.
    #[error("has {0} bytes, and no digest is that long")]
    Length(usize),
    /// The digest that the text names has another length.
    #[error("has {length} bytes, and {algorithm} has {}", .algorithm.digest_size())]
    OtherLength {
        /// Algorithm that the text names.
        algorithm: Algorithm,
        /// Number of bytes of the value.
        length: usize,
    },
}

impl Value {
    /// Creates a value of which nothing is known but its bytes.
    ///
    /// # Errors
    ///
    /// Fails if no digest is that long.
    pub fn new(digest: Vec<u8>) -> Result<Self, UnknownValue> {
        if digests_of_size(digest.len()).is_empty() {
            return Err(UnknownValue::Length(digest.len()));
        }
        Ok(Self { digest, algorithm: None, parts: None })
    }

    /// Creates a value of an algorithm.
    ///
    /// # Errors
    ///
    /// Fails if its digest has another length.
    pub fn of(algorithm: Algorithm, digest: Vec<u8>) -> Result<Self, UnknownValue> {
        let length = digest.len();
        if length != algorithm.digest_size() || length == 0 {
            return Err(UnknownValue::OtherLength { algorithm, length });
        }
        Ok(Self { digest, algorithm: Some(algorithm), parts: None })
    }
}

impl FromStr for Value {
    type Err = UnknownValue;

    /// Reads `HEX`, `BASE64`, `ALGORITHM:HEX`, `ALGORITHM:BASE64`, the same with `=`, `sha256-BASE64` as in
    /// Subresource Integrity, and `HEX-N` or `BASE64-N` as S3 writes it for objects of N parts. Blanks around it and
    /// double quotes, as in JSON, do not count.
    fn from_str(text: &str) -> Result<Self, UnknownValue> {
        let text = text.trim_ascii();
        let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let text = quoted.unwrap_or(text);
        if text.is_empty() {
            return Err(UnknownValue::Empty);
        }
        if let Some((name, rest)) = text.split_once([':', '='])
            && let Ok(algorithm) = name.parse()
        {
            let rest = rest.trim_start_matches([' ', '\t']);
            return Self::of(algorithm, decode(rest).ok_or(UnknownValue::Text)?);
        }
        if let Some((name, rest)) = text.split_once('-')
            && INTEGRITY.contains(&name)
            && let Ok(algorithm) = name.parse()
        {
            return Self::of(algorithm, decode_base64(rest.as_bytes()).ok_or(UnknownValue::Text)?);
        }
        let error = match decode(text).map(Self::new) {
            Some(Ok(value)) => return Ok(value),
            _ if is_hex(text) && text.len() % 2 == 1 => UnknownValue::OddDigits(text.len()),
            Some(Err(error)) => error,
            None => UnknownValue::Text,
        };
        let (rest, count) = text.rsplit_once('-').ok_or_else(|| error.clone())?;
        let parts = parse_parts(count).ok_or(error)?;
        let digest = decode(rest).ok_or(UnknownValue::Text)?;
        Ok(Self { parts: Some(parts), ..Self::new(digest)? })
    }
}

/// Reads hexadecimal digits, or base64. A text of hexadecimal digits alone is never base64: a digest whose base64 looks
/// like that does not occur.
fn decode(text: &str) -> Option<Vec<u8>> {
    Encoding::Hex.decode(text.as_bytes()).or_else(|| decode_base64(text.as_bytes()))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn parse_parts(text: &str) -> Option<u64> {
    let is_number = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|parts| is_number && *parts <= MAX_PARTS)
}

/// Digests of Subresource Integrity (W3C).
const INTEGRITY: [&str; 3] = ["sha256", "sha384", "sha512"];

/// Maximum number of parts of an object in S3.
/// Limit in parts.
const MAX_PARTS: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        // The digest of nothing.
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let base64 = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        let digest = Encoding::Hex.decode(hex.as_bytes()).unwrap();
        let plain = Value::new(digest.clone()).unwrap();
        let named = Value::of(Algorithm::Sha256, digest).unwrap();
        let in_parts = Value { parts: Some(38), ..plain.clone() };
        for (text, value) in [
            (hex.to_owned(), &plain),
            (hex.to_ascii_uppercase(), &plain),
            (base64.to_owned(), &plain),
            (base64.replace('=', ""), &plain),
            (base64.replace('+', "-").replace('/', "_"), &plain),
            (format!("sha256:{hex}"), &named),
            (format!("sha256:{base64}"), &named),
            (format!("sha256: {hex}"), &named),
            (format!("SHA256={hex}"), &named),
            (format!(" \"{base64}\"\r\n"), &plain),
            (format!("sha256-{base64}"), &named),
            (format!("{base64}-38"), &in_parts),
            (format!("{hex}-38"), &in_parts),
        ] {
            assert_eq!(text.parse().as_ref(), Ok(value), "{text}");
        }
        // 48 bytes of base64 are not read as 32 of hexadecimal digits, and the reverse.
        assert_eq!("A".repeat(63).parse::<Value>(), Err(UnknownValue::OddDigits(63)));
        assert_eq!("A".repeat(64).parse::<Value>().unwrap().digest.len(), 32);
        assert_eq!(format!("{}z", "A".repeat(63)).parse::<Value>().unwrap().digest.len(), 48);
    }

    #[test]
    fn other_texts() {
        let hex = "0".repeat(64);
        for text in [
            "",
            "sha256:",
            "disk.img",
            &hex[1..],
            &format!("{hex}0"),
            "\"\"",
            &format!("\"{hex}"),
            &format!("{hex} {hex}"),
            &format!("sha512:{hex}"),
            &format!("sha256:{}", &hex[2..]),
            &format!("null:{hex}"),
            "null:",
            "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuF=",
            "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuF",
            "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=",
            &format!("{hex}-0"),
            &format!("{hex}-01"),
            &format!("{hex}-10001"),
            &format!("{hex}-"),
            &format!("{hex}-+1"),
        ] {
            assert!(text.parse::<Value>().is_err(), "{text}");
        }
    }
}
