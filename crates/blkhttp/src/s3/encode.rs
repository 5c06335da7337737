//! Percent-encoding by the rules of Signature V4.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Encodes all but letters, digits, `-._~` and slashes.
pub(crate) fn path(key: &str) -> String {
    utf8_percent_encode(key, PATH).to_string()
}

/// Encodes all but letters, digits and `-._~`: a value of a query or a form.
pub(crate) fn value(text: &str) -> String {
    utf8_percent_encode(text, VALUE).to_string()
}

const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const PATH: &AsciiSet = &VALUE.remove(b'/');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_encoded_as_botocore_does() {
        assert_eq!(path("a/b c+d%20&é~.-_*'()"), "a/b%20c%2Bd%2520%26%C3%A9~.-_%2A%27%28%29");
        assert_eq!(value("a/b=c"), "a%2Fb%3Dc");
        assert_eq!(path("//x/../y?#"), "//x/../y%3F%23");
    }
}
