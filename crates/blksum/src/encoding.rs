//! Digests as text: hexadecimal and base64.

use data_encoding::{
    BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD, Encoding as DataEncoding, HEXLOWER,
    HEXLOWER_PERMISSIVE,
};

/// The encoding of a digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// Two lower-case digits for each byte, as in sha256sum.
    #[default]
    Hex,
    /// Base64 with padding (RFC 4648, section 4), as in `cksum --base64`.
    Base64,
}

impl Encoding {
    /// Returns the text of a digest.
    pub fn encode(self, digest: &[u8]) -> String {
        match self {
            Self::Hex => HEXLOWER.encode(digest),
            Self::Base64 => BASE64.encode(digest),
        }
    }

    /// Reads the text of a digest. Hexadecimal digits may be in upper case.
    pub fn decode(self, text: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Hex => HEXLOWER_PERMISSIVE.decode(text).ok(),
            Self::Base64 => decode(&BASE64, text),
        }
    }
}

/// Reads base64 in either of its alphabets (RFC 4648, sections 4 and 5), with all of its padding or none. Unused
/// bits must be zero, so that a digest has one text for each of these forms.
pub fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let encodings = [&BASE64, &BASE64_NOPAD, &BASE64URL, &BASE64URL_NOPAD];
    encodings.into_iter().find_map(|encoding| decode(encoding, text))
}

/// Decodes text that is one piece: padding in its middle ends a piece.
fn decode(encoding: &DataEncoding, text: &[u8]) -> Option<Vec<u8>> {
    encoding.decode(text).ok().filter(|digest| encoding.encode(digest).as_bytes() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_digests() {
        let digest = [0xfb, 0xff, 0x00, 0x10];
        assert_eq!(Encoding::Hex.encode(&digest), "fbff0010");
        assert_eq!(Encoding::Base64.encode(&digest), "+/8AEA==");
        for text in ["+/8AEA==", "+/8AEA", "-_8AEA==", "-_8AEA"] {
            assert_eq!(decode_base64(text.as_bytes()).as_deref(), Some(&digest[..]), "{text}");
        }
        for text in [
            "+_8AEA==",
            "+/8AEA=",
            "+/8AEB==",
            "+/8AE",
            "+/8AEA==\n",
            "+/8A EA==",
            "+/8AEA==+/8AEA==",
        ] {
            assert_eq!(decode_base64(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Encoding::Base64.decode(b"+/8AEA==").as_deref(), Some(&digest[..]));
        assert_eq!(Encoding::Base64.decode(b"-_8AEA=="), None);
        assert_eq!(Encoding::Base64.decode(b"+/8AEA"), None);
        assert_eq!(Encoding::Base64.decode(b"+/8AEA==+/8AEA=="), None);
        assert_eq!(Encoding::Hex.decode(b"FBff0010").as_deref(), Some(&digest[..]));
        for text in ["fbff001", "fbff001g", " fbff0010"] {
            assert_eq!(Encoding::Hex.decode(text.as_bytes()), None, "{text}");
        }
    }
}
