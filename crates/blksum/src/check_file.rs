//! Reads and writes the lines of check files.
//!
//! The meaning of a line follows from its bytes, the digest of untagged lines and, for one rare
//! form ([`Parser`]), the lines before it. Nothing here opens a file. docs/check-file.md specifies
//! the format. It is the format of `sha256sum --check` with more kinds of tags.

use blkhash::Algorithm;

use crate::expect::Value;
use crate::tag::PREFIX;
use crate::{Encoding, Tag};

/// Parses the lines of check files.
///
/// Keeps one fact between lines: whether a name follows the digest after one blank (as old BSD
/// tools wrote it) or after a blank and a mode character. A file never mixes the two, so an
/// attacker who chooses a name with a leading blank cannot make it stand for another name.
#[derive(Clone, Debug)]
pub struct Parser {
    untagged: Algorithm,
    /// Whether untagged lines may have other digests, of at least [`MIN_ANY`] bytes.
    is_any: bool,
    /// The tag that untagged lines get.
    tag: Option<Tag>,
    separator: Option<Separator>,
}

/// A parsed line of a check file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A comment or an empty line.
    Ignored,
    /// A checksum and the name of the file it belongs to.
    Entry(Entry),
    /// A line in no known format.
    Malformed,
}

/// A checksum to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// File name with escapes resolved. Contains no NUL. May be empty if there is a tag.
    pub name: Vec<u8>,
    /// Checksum, as long as the digest of the tag or of untagged lines.
    pub digest: Vec<u8>,
    /// Algorithm that an untagged line names.
    pub algorithm: Option<Algorithm>,
    /// Algorithm, parameters and content named by the line, or `None` for an untagged line.
    pub tag: Option<Tag>,
}

/// The form of a malformed line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mistake {
    /// A value in hexadecimal without a name.
    Bare,
    /// A value behind the name of another digest and a colon, as registries of containers write it, or without a
    /// name. Holds the digest.
    Prefixed(Algorithm),
    /// A line that begins with the tag of an image, and is damaged or of a later version. It has a checksum
    /// that cannot be checked.
    ImageTag,
    /// A line with NUL, or one that is too long. The file is no list.
    Binary,
}

/// Output format of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// Form of the line.
    pub form: Form,
    /// The encoding of the checksum.
    pub encoding: Encoding,
    /// Ends the line with NUL and escapes nothing. Such lines do not belong in check files.
    pub zero: bool,
}

/// Form of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// `HEX  NAME`
    Text,
    /// `HEX *NAME`
    Binary,
    /// `ALGORITHM:HEX  NAME`, as in descriptors of OCI.
    Named(Algorithm),
    /// `TAG (NAME) = HEX`
    Tagged(Tag),
}

impl Parser {
    /// Creates a parser that expects digests of `untagged` on untagged lines.
    pub fn new(untagged: Algorithm) -> Self {
        Self { untagged, is_any: false, tag: None, separator: None }
    }

    /// Creates a parser that takes any digest of at least 16 bytes on untagged lines, and shorter ones of `untagged`.
    pub fn of_any(untagged: Algorithm) -> Self {
        Self { is_any: true, ..Self::new(untagged) }
    }

    /// A parser for which untagged lines have digests of the files' own bytes, as sha256sum and its
    /// siblings write them. Their entries have the tag [`Tag::File`].
    pub fn of_files(untagged: Algorithm) -> Self {
        Self { tag: Some(Tag::File(untagged)), ..Self::new(untagged) }
    }

    /// Parses `line`, with or without its line ending (`\n` or `\r\n`).
    pub fn parse(&mut self, line: &[u8]) -> Line {
        if line.starts_with(b"#") {
            return Line::Ignored;
        }
        if line.len() > MAX_LINE {
            return Line::Malformed;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return Line::Ignored;
        }
        // A name holds no NUL, so this is a binary file or its lines end with NUL.
        if line.contains(&0) {
            return Line::Malformed;
        }
        self.parse_entry(line).map_or(Line::Malformed, Line::Entry)
    }

    fn parse_entry(&mut self, line: &[u8]) -> Option<Entry> {
        let line = trim_blanks(line);
        let (line, escaped) = match line.strip_prefix(b"\\") {
            Some(rest) => (rest, true),
            None => (line, false),
        };
        let (tag, digest, algorithm, name) = match split_tag(line) {
            Some((tag, rest)) => {
                let (name, digits) = split_tagged(rest)?;
                let digest = decode(digits).filter(|digest| digest.len() == tag.digest_size())?;
                (Some(tag), digest, None, name)
            }
            None => {
                let (Value { digest, algorithm, .. }, name) = self.split_untagged(line)?;
                (self.tag.clone(), digest, algorithm, name)
            }
        };
        let name = if escaped { unescape(name)? } else { name.to_vec() };
        Some(Entry { name, digest, algorithm, tag })
    }

    /// Splits `VALUE  NAME`, `VALUE *NAME` or `VALUE NAME` into checksum and name.
    fn split_untagged<'a>(&mut self, line: &'a [u8]) -> Option<(Value, &'a [u8])> {
        let end = line.iter().position(|byte| is_blank(*byte))?;
        let name = &line[end + 1..];
        // Only a line that starts with a digest may decide how later lines are read.
        let value = self.value(&line[..end])?;
        let separator = match name {
            [] => return None,
            [b' ' | b'*', _, ..] => *self.separator.get_or_insert(Separator::BlankAndMode),
            _ if self.separator == Some(Separator::BlankAndMode) => return None,
            _ => *self.separator.insert(Separator::Blank),
        };
        match separator {
            Separator::BlankAndMode => Some((value, &name[1..])),
            Separator::Blank => Some((value, name)),
        }
    }

    /// Reads `HEX`, `BASE64` or `ALGORITHM:HEX`, if untagged lines may have such a digest.
    fn value(&self, text: &[u8]) -> Option<Value> {
        let value = match text.iter().position(|byte| *byte == b':') {
            Some(_) => std::str::from_utf8(text).ok()?.parse().ok()?,
            None => Value::new(decode(text)?).ok()?,
        };
        let size = value.digest.len();
        let is_expected = size == self.untagged.digest_size()
            && value.algorithm.is_none_or(|algorithm| algorithm == self.untagged);
        let is_other = self.is_any && (value.algorithm.is_some() || size >= MIN_ANY);
        (is_expected || is_other).then_some(value)
    }
}

impl Style {
    /// Returns the line for `name` with the checksum `digest`, including its line ending.
    pub fn line(&self, name: &[u8], digest: &[u8]) -> Vec<u8> {
        let escaped = if self.zero { None } else { escape(name) };
        let digits = self.encoding.encode(digest);
        let mut line = Vec::with_capacity(name.len() + digits.len() + 48);
        if escaped.is_some() {
            line.push(b'\\');
        }
        let name = escaped.as_deref().unwrap_or(name);
        match &self.form {
            Form::Tagged(tag) => {
                line.extend_from_slice(tag.to_string().as_bytes());
                line.extend_from_slice(b" (");
                line.extend_from_slice(name);
                line.extend_from_slice(b") = ");
                line.extend_from_slice(digits.as_bytes());
            }
            Form::Text | Form::Binary | Form::Named(_) => {
                if let Form::Named(algorithm) = &self.form {
                    line.extend_from_slice(algorithm.name().as_bytes());
                    line.push(b':');
                }
                line.extend_from_slice(digits.as_bytes());
                line.extend_from_slice(if self.form == Form::Binary { b" *" } else { b"  " });
                line.extend_from_slice(name);
            }
        }
        line.push(if self.zero { 0 } else { b'\n' });
        line
    }
}

/// Hexadecimal digits that `line` begins with, if it has the form of an untagged line with a digest of
/// any length.
pub fn untagged_digits(line: &[u8]) -> Option<usize> {
    let line = trim_blanks(line);
    let line = line.strip_prefix(b"\\").unwrap_or(line);
    let digits = line.iter().position(|byte| !byte.is_ascii_hexdigit())?;
    (digits > 0 && is_blank(line[digits]) && line.len() > digits + 1).then_some(digits)
}

/// Returns what `line` looks like, if it is malformed in a known way.
pub fn mistake(line: &[u8]) -> Option<Mistake> {
    let text = line.trim_ascii_start();
    if text.strip_prefix(b"\\").unwrap_or(text).starts_with(PREFIX.as_bytes()) {
        return Some(Mistake::ImageTag);
    }
    if line.contains(&0) || line.len() > MAX_LINE {
        return Some(Mistake::Binary);
    }
    let line = line.trim_ascii();
    let is_value = |text: &[u8]| text.len() >= MIN_DIGITS && Encoding::Hex.decode(text).is_some();
    if is_value(line) {
        return Some(Mistake::Bare);
    }
    let colon = line.iter().position(|byte| *byte == b':')?;
    let algorithm = std::str::from_utf8(&line[..colon]).ok()?.parse().ok()?;
    let rest = &line[colon + 1..];
    let end = rest.iter().position(|byte| is_blank(*byte)).unwrap_or(rest.len());
    is_value(&rest[..end]).then_some(Mistake::Prefixed(algorithm))
}

/// Escapes backslashes, newlines and carriage returns in `name`, or returns `None` if it has none.
/// A line with an escaped name starts with a backslash.
pub fn escape(name: &[u8]) -> Option<Vec<u8>> {
    if !name.iter().any(|byte| matches!(byte, b'\\' | b'\n' | b'\r')) {
        return None;
    }
    let mut escaped = Vec::with_capacity(name.len() + 8);
    for &byte in name {
        match byte {
            b'\\' => escaped.extend_from_slice(b"\\\\"),
            b'\n' => escaped.extend_from_slice(b"\\n"),
            b'\r' => escaped.extend_from_slice(b"\\r"),
            _ => escaped.push(byte),
        }
    }
    Some(escaped)
}

/// Reverses [`escape`]. Returns `None` for an escape that it does not write.
fn unescape(name: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(name.len());
    let mut bytes = name.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next()? {
                b'\\' => b'\\',
                b'n' => b'\n',
                b'r' => b'\r',
                _ => return None,
            },
            _ => byte,
        });
    }
    Some(plain)
}

/// Returns the tag before the first parenthesis, and the text after the parenthesis.
fn split_tag(line: &[u8]) -> Option<(Tag, &[u8])> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let tag = line[..open].strip_suffix(b" ").unwrap_or(&line[..open]);
    let tag = std::str::from_utf8(tag).ok()?.parse().ok()?;
    Some((tag, &line[open + 1..]))
}

/// Splits `NAME) = HEX` into name and digest. Searches from the right because the name may contain
/// anything.
fn split_tagged(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let close = rest.iter().rposition(|byte| *byte == b')')?;
    let digest = trim_blanks(&rest[close + 1..]).strip_prefix(b"=")?;
    Some((&rest[..close], trim_blanks(digest)))
}

/// Reads a checksum in hexadecimal, or in base64 as `cksum --base64` writes it.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    [Encoding::Hex, Encoding::Base64].into_iter().find_map(|encoding| encoding.decode(text))
}

fn trim_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| is_blank(**byte)).count();
    &text[blanks..]
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Blank,
    BlankAndMode,
}

/// Minimum length in bytes of a checksum that an untagged line may have without being named: a text may begin with a
/// word that looks like a shorter one.
const MIN_ANY: usize = 16;

/// Minimum number of digits of a value, as many as CRC-32 has.
const MIN_DIGITS: usize = 8;

/// Maximum length of a line in bytes, including its line ending. Leaves room for the longest path
/// (PATH_MAX with every byte escaped), tag and digest. A caller that reads a file line by line
/// needs to keep at most one byte more.
pub const MAX_LINE: usize = 16 << 10;

#[cfg(test)]
mod tests;
