//! JSON output, with escapes for all characters that a terminal would interpret. Programs decode the
//! same strings with or without these escapes.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
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

/// Makes a value of a new struct with these fields, which is serialized in their order. The order is that of
/// the table in docs/json.md.
macro_rules! record {
    ($($(#[$attribute:meta])* $field:ident $(: $value:expr)?),* $(,)?) => {{
        #[allow(non_camel_case_types, reason = "the type of each field is named like the field")]
        let record = {
            #[derive(serde::Serialize)]
            struct Record<$($field),*> {
                $($(#[$attribute])* $field: $field,)*
            }
            Record { $($field $(: $value)?),* }
        };
        record
    }};
}
pub(crate) use record;

/// A name as JSON can hold it, and its bytes in hexadecimal in `FIELD_bytes` where that is not exact. `null`
/// without a name. To be flattened into a record.
pub struct Name<'a> {
    field: &'static str,
    name: Option<&'a OsStr>,
}

impl<'a> Name<'a> {
    /// Makes the field `name`.
    pub fn new(name: &'a OsStr) -> Self {
        Self::of("name", Some(name))
    }

    /// Makes another field.
    pub fn of(field: &'static str, name: Option<&'a (impl AsRef<OsStr> + ?Sized)>) -> Self {
        Self { field, name: name.map(AsRef::as_ref) }
    }
}

impl Serialize for Name<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        let text = self.name.map(OsStr::to_string_lossy);
        object.serialize_entry(self.field, &text)?;
        if let (Some(name), Some(Cow::Owned(_))) = (self.name, text) {
            object.serialize_entry(&format!("{}_bytes", self.field), &hex(name.as_bytes()))?;
        }
        object.end()
    }
}

/// Writes bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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

    #[test]
    fn records_keep_their_order_and_the_bytes_of_names() {
        let r#type = "summary";
        let record = record! {
            r#type,
            #[serde(flatten)] name: Name::new(OsStr::new("a")),
            #[serde(flatten)] hash_file: Name::of("hash_file", Some(OsStr::from_bytes(b"caf\xe9"))),
            #[serde(flatten)] device: Name::of("device", None::<&OsStr>),
            blocks: 2,
        };
        let expected = concat!(
            r#"{"type":"summary","name":"a","hash_file":"caf�","hash_file_bytes":"636166e9","#,
            r#""device":null,"blocks":2}"#
        );
        assert_eq!(text(&record), expected);
    }
}
