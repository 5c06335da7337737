//! JSON output, with escapes for all characters that a terminal would interpret. Programs decode the
//! same strings with or without these escapes.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

pub use blkrecord::hex;
use serde::Serialize;
use serde_json::ser::Formatter;

use crate::quote;

/// Serializes `value` to one line, without a newline.
pub fn to_vec(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut line, Escapes))?;
    Ok(line)
}

/// Serializes `value` to one line, without a newline.
pub fn text(value: &impl Serialize) -> String {
    let line = to_vec(value).expect("plain data is JSON");
    String::from_utf8(line).expect("JSON is text")
}

/// Serializes `value` to one line, with a newline.
pub fn line(value: &impl Serialize) -> String {
    text(value) + "\n"
}

/// Escapes in a JSON text without line breaks what a terminal would interpret. All of it is in strings.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if text.chars().all(quote::is_printable) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if quote::is_printable(c) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out.into()
}

/// serde_json itself escapes quotes, backslashes and the controls of ASCII, but for DEL.
struct Escapes;

impl Formatter for Escapes {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        out.write_all(escaped(fragment).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn controls_are_escapes_and_values_stay() {
        let cases = [
            ("a \"ü\" \\ 中", r#""a \"ü\" \\ 中""#),
            ("\n\u{1b}[2J", r#""\n\u001b[2J""#),
            ("a\u{7f}b\u{80}\u{9b}2J\u{9f}", r#""a\u007fb\u0080\u009b2J\u009f""#),
            ("\u{202e}x\u{2066}\u{200f}\u{61c}\u{2028}", r#""\u202ex\u2066\u200f\u061c\u2028""#),
        ];
        for (value, written) in cases {
            assert_eq!(text(&json!(value)), written);
            assert_eq!(serde_json::from_str::<Value>(written).unwrap(), value);
        }
        assert_eq!(text(&json!({ "a\u{9b}": [1, null, true] })), r#"{"a\u009b":[1,null,true]}"#);
    }
}
