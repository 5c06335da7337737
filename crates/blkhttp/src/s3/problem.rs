//! Reasons for failures, before the URL is added to them.

use crate::{Error, ErrorKind, Url};

/// Category and reason of an error of an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem(pub ErrorKind, pub String);

impl Problem {
    /// Creates the reason why there are no credentials, or no usable ones.
    pub fn denied(reason: impl Into<String>) -> Self {
        Self(ErrorKind::Denied, reason.into())
    }

    /// Creates the reason why a URL or an option of its server is not valid.
    pub fn url(reason: impl Into<String>) -> Self {
        Self(ErrorKind::Url, reason.into())
    }

    /// Creates the name of what is not supported.
    pub fn unsupported(reason: impl Into<String>) -> Self {
        Self(ErrorKind::Unsupported, reason.into())
    }

    /// Returns the error of an object.
    pub fn of(self, url: &Url) -> Error {
        Error::new(self.0, url, self.1)
    }
}

/// Returns text of a server or a file in one short line: control characters and characters that change the direction of
/// text become escapes, and what is longer than [`MAX_EXCERPT`] is cut.
pub(crate) fn excerpt(text: &str) -> String {
    let mut line = String::new();
    for c in text.trim().chars() {
        if line.len() >= MAX_EXCERPT {
            line.push_str("...");
            break;
        }
        match c.is_control() || is_format(c) {
            true => line.extend(c.escape_default()),
            false => line.push(c),
        }
    }
    line
}

/// Returns whether a character has no shape of its own but changes the shape of others.
fn is_format(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Maximum length of foreign text in a message.
/// Limit in bytes.
const MAX_EXCERPT: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_one_short_line() {
        assert_eq!(excerpt(" a\nb\x1b[31m\u{202e}c "), "a\\nb\\u{1b}[31m\\u{202e}c");
        let long = excerpt(&"x".repeat(1000));
        assert_eq!(long, "x".repeat(MAX_EXCERPT) + "...");
    }
}
